"""The doors of the second way in. Without OIDC_ISSUER there is nothing behind them, and the extra is not needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST


def _where_set_up(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if settings.OPENID is None:
            raise Http404
        return view(request)

    return guarded


@login_not_required
@never_cache
@_where_set_up
@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    from accounts.oidc import flow  # noqa: PLC0415 # an extra: there where the setting is

    return flow.begin(request)


@login_not_required
@never_cache
@_where_set_up
@require_http_methods(["GET"])  # no HEAD, which would use up the code
def answer(request: HttpRequest) -> HttpResponse:
    from accounts.oidc import flow  # noqa: PLC0415

    return flow.answer(request)
