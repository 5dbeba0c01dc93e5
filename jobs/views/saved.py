"""The forms that keep, rename and delete a view of the job list."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs.exceptions import JobError, NotAllowed
from jobs.lists import saved
from jobs.scope import person


def _list(query: str) -> HttpResponse:
    return redirect(f"{reverse('jobs:list')}{'?' if query else ''}{query}")


@require_POST
def view_save(request: HttpRequest) -> HttpResponse:
    query = request.POST.get("query", "")
    try:
        view = saved.save(
            user=person(request),
            name=request.POST.get("name", ""),
            query=query,
            namespace=request.POST.get("namespace", ""),
            request=request,
        )
    except JobError as error:
        messages.error(request, error.message)
        return _list(query.replace("\0", ""))
    messages.success(request, _("Saved as %(name)s.") % {"name": view.name})
    return _list(view.query)


@require_POST
def view_change(request: HttpRequest, view_id: int) -> HttpResponse:
    """Rename, share or delete: which, the button says."""
    user = person(request)
    view = saved.visible_view(user, view_id)
    query = view.query
    try:
        if request.POST.get("do") == "delete":
            saved.remove(view, user=user, request=request)
            messages.success(request, _("%(name)s is deleted.") % {"name": view.name})
        else:
            view = saved.change(
                view,
                user=user,
                name=request.POST.get("name", ""),
                namespace=request.POST.get("namespace"),
                request=request,
            )
            messages.success(request, _("Saved as %(name)s.") % {"name": view.name})
    except NotAllowed as error:
        return render(request, "403.html", {"reason": error.message}, status=403)
    except JobError as error:
        messages.error(request, error.message)
    return _list(query)
