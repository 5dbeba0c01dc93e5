"""The members of a namespace as a page, and the admin's doors to roles by hand (`members`), there and on the Access page."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import members, roster
from accounts.admin_views import access_page, admin_of
from accounts.found import Given
from accounts.models import Membership, Namespace, User
from accounts.reasons import Reason
from accounts.roles import Role


@require_safe
def members_of(request: HttpRequest, name: str) -> HttpResponse:
    """Who has which role here and why. Roles by hand are an admin's to give, where operators are."""
    return _roster_page(request, roster.readable_place(cast(User, request.user), name), Given())


def _roster_page(request: HttpRequest, place: Namespace, given: Given, *, status: int = 200) -> HttpResponse:
    words = request.GET.get("q", "").strip()[:150].replace("\0", "\ufffd")
    page, rows = roster.page_of(place, words, request.GET.get("page"))
    context = {
        "namespace": place,
        "page": page,
        "rows": rows,
        "q": words,
        "given": given,
        "roles": members.ROLES,
        "today": timezone.localdate(),
        "may_change": cast(User, request.user).is_site_admin and settings.OPERATOR.is_here,
    }
    return render(request, "accounts/members.html", context, status=status)


@require_POST
def give_role_here(request: HttpRequest, name: str) -> HttpResponse:
    """A role in this project for whoever is named, with an end or without."""
    by = admin_of(request)
    place = get_object_or_404(Namespace, slug=name.replace("\0", "\ufffd"), kind="project")
    typed = {field: request.POST.get(field, "").strip() for field in ("username", "role", "ends_at")}
    try:
        row = members.give(place, typed, by=by, request=request)
    except members.MemberRefused as error:
        return _roster_page(request, place, Given(typed, error.fields), status=422)
    _say_given(request, row)
    return redirect("accounts:members", place.slug)


def _say_given(request: HttpRequest, row: Membership) -> None:
    words = {"name": row.user.username, "role": row.role, "place": row.namespace.slug}
    messages.success(request, _("%(name)s is %(role)s of %(place)s from now on.") % words)


@require_POST
def give_role(request: HttpRequest, user_id: int) -> HttpResponse:
    """A role in a project for this person, with an end or without."""
    by = admin_of(request)
    person = get_object_or_404(User, pk=user_id)
    typed = {name: request.POST.get(name, "").strip() for name in ("namespace", "role", "ends_at")}
    place = Namespace.objects.filter(slug=typed["namespace"].replace("\0", "\ufffd"), kind="project").first()
    try:
        if place is None:
            raise members.MemberRefused({"namespace": [_("Choose a project.")]})
        values = {"username": person.username, "role": typed["role"], "ends_at": typed["ends_at"]}
        row = members.give(place, values, by=by, request=request)
    except members.MemberRefused as error:
        fields = dict(error.fields)
        # of the person nothing is typed in this form
        fields.setdefault("form", fields.pop("username", []))
        return access_page(request, {"role": Role.MEMBER}, person=person, given=Given(typed, fields), status=422)
    _say_given(request, row)
    return _back_to(person)


@require_POST
def change_role(request: HttpRequest, membership_id: int) -> HttpResponse:
    """Another role or end for one that was given by hand; with `take` it goes."""
    by = admin_of(request)
    row = get_object_or_404(Membership.objects.select_related("user", "namespace"), pk=membership_id)
    words = {"name": row.user.username, "place": row.namespace.slug}
    try:
        if "take" in request.POST:
            members.take(row, by=by, request=request)
            messages.success(request, _("Done: the role by hand of %(name)s in %(place)s is gone.") % words)
        else:
            values = {name: request.POST[name].strip() for name in ("role", "ends_at") if name in request.POST}
            if values.get("ends_at") == Reason(Role(row.role), row.source, row.ends_at).last_day:
                del values["ends_at"]  # a day stands for an end at noon, too, which must not move unasked
            members.change(row, values, by=by, request=request)
            messages.success(request, _("Done: the role of %(name)s in %(place)s is changed.") % words)
    except members.MemberRefused as error:
        messages.error(request, str(error))
    if "here" in request.POST:  # from the page of the namespace's members
        return redirect("accounts:members", row.namespace.slug)
    return _back_to(row.user)


def _back_to(person: User) -> HttpResponse:
    return redirect(f"{reverse('accounts:access')}?{urlencode({'person': person.username})}")
