"""The Access page's doors to roles by hand (`members`)."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts import members
from accounts.admin_views import access_page, admin_of
from accounts.found import Given
from accounts.models import Membership, Namespace, User
from accounts.reasons import Reason
from accounts.roles import Role


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
        members.give(place, values, by=by, request=request)
    except members.MemberRefused as error:
        fields = dict(error.fields)
        # of the person nothing is typed in this form
        fields.setdefault("form", fields.pop("username", []))
        return access_page(request, {"role": Role.MEMBER}, person=person, given=Given(typed, fields), status=422)
    words = {"name": person.username, "role": typed["role"], "place": place.slug}
    messages.success(request, _("%(name)s is %(role)s of %(place)s from now on.") % words)
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
    return _back_to(row.user)


def _back_to(person: User) -> HttpResponse:
    return redirect(f"{reverse('accounts:access')}?{urlencode({'person': person.username})}")
