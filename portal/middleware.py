"""What stands between every request and its view."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from accounts.disguise import uncovered_html


class SignInUnlessOpen(LoginRequiredMiddleware):
    """Signing in is the rule. Views marked open do not ask who it is: the health pages must answer without a database."""

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        if not getattr(view_func, "login_required", True):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)


class HiddenCharactersShown(MiddlewareMixin):
    """Whatever people, programs and directories wrote: on our pages, titles included, no name is disguised as another one."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if isinstance(response, HttpResponse) and response.headers.get("Content-Type", "").startswith("text/html"):
            page = response.content.decode()
            if (shown := uncovered_html(page)) is not page:
                response.content = shown.encode()
        return response
