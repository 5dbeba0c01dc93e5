"""The admin's pages of people: which group gives which role, what a pass would change, why somebody has access, who there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import audit, found, grants, mappings, people, sync
from accounts.admin_api import DirectoryUnavailable, read_directory
from accounts.models import DirectorySync, GroupMapping, Namespace, User
from accounts.problems import sentence
from accounts.reasons import held, site_role_in_words
from accounts.roles import Role, SiteRole

PAGE = 50
SHOWN = 200  # lines of a preview
SITE = "site:"  # before a role for the whole site, in the form's one list of roles


@dataclass(frozen=True, slots=True)
class Tested:
    """What the directory and the rules say of one name."""

    typed: str
    shown: str = ""
    dn: str = ""
    has_ended: bool = False
    groups: tuple[str, ...] = ()
    roles: tuple[tuple[str, str, str], ...] = ()  # namespace, role, through which group
    site: tuple[tuple[str, str], ...] = ()  # role for the site, through which group
    problem: str = ""


def admin_of(request: HttpRequest) -> User:
    person = cast(User, request.user)
    if not person.is_site_admin:
        raise PermissionDenied(_("This is for admins of the site."))
    return person


@require_http_methods(["GET", "HEAD", "POST"])
def access(request: HttpRequest) -> HttpResponse:
    """The rules, and the form for a new one, which shows what it would do before it is added."""
    by = admin_of(request)
    values = {name: request.POST.get(name, "").strip() for name in ("group", "namespace", "role")}
    if request.method != "POST":
        return access_page(request, {"role": Role.MEMBER.value})
    try:
        rule = mappings.checked(_as_document(values))
        if "preview" in request.POST:
            return _previewed(request, values, [*sync.rules(), rule])
        mappings.add(rule, by=by, request=request)
    except mappings.MappingRefused as error:
        return access_page(request, values, errors=error.fields, status=422)
    messages.success(
        request, _("The rule is there. Its roles come with the next pass, within two minutes, or now by hand.")
    )
    return redirect("accounts:access")


def _as_document(values: dict[str, str]) -> dict[str, str]:
    """The form hides the namespaces where a role for the site is chosen, whatever is chosen among them."""
    if not values["role"].startswith(SITE):
        return values
    return {"group": values["group"], "site_role": values["role"].removeprefix(SITE)}


@require_POST
def change_mapping(request: HttpRequest, mapping_id: int) -> HttpResponse:
    by = admin_of(request)
    row = get_object_or_404(GroupMapping, pk=mapping_id)
    if "remove" in request.POST:
        mappings.remove(row, by=by, request=request)
        messages.success(request, _("The rule is gone; the roles it gave go with the next pass."))
        return redirect("accounts:access")
    try:
        field = "site_role" if row.site_role else "role"
        mappings.change(row, {field: request.POST.get("role", "")}, by=by, request=request)
    except mappings.MappingRefused as error:
        messages.error(request, str(error))
    return redirect("accounts:access")


@require_POST
def make_project(request: HttpRequest) -> HttpResponse:
    by = admin_of(request)
    values = {name: request.POST.get(name, "").replace("\0", "\ufffd").strip() for name in ("project", "description")}
    try:
        project = people.make_project(values["project"], by=by, description=values["description"], request=request)
    except people.NameRefused as error:
        return access_page(request, {"role": Role.MEMBER.value, **values}, errors={"project": [str(error)]}, status=422)
    messages.success(request, _("%(slug)s is there. A rule or a role by hand lets people in.") % {"slug": project.slug})
    return redirect("accounts:access")


@require_POST
def list_project(request: HttpRequest, name: str) -> HttpResponse:
    """Name a project to strangers, or keep it from them."""
    by = admin_of(request)
    project = get_object_or_404(Namespace, slug=name.replace("\0", "\ufffd"), kind="project")
    wanted = "list" in request.POST
    if project.is_listed != wanted:
        with transaction.atomic():
            project.is_listed = wanted
            project.save(update_fields=["is_listed"])
            audit.record(
                by,
                "namespace.change",
                target=project.slug,
                namespace=project.slug,
                before={"is_listed": not wanted},
                after={"is_listed": wanted},
                request=request,
            )
    return redirect("accounts:access")


@require_POST
def sync_now(request: HttpRequest) -> HttpResponse:
    """`dry` shows what a pass would change; without it the pass is made."""
    by = admin_of(request)
    if "dry" in request.POST:
        return _previewed(request, {"role": Role.MEMBER.value}, None)
    try:
        outcome = sync.run(read_directory(), by=by, request=request)
    except DirectoryUnavailable as error:
        messages.error(request, str(error.detail))
        return redirect("accounts:access")
    count = sum(grants.counted(outcome.plan).values())
    words = ngettext("Done: %(count)s change.", "Done: %(count)s changes.", count) % {"count": count}
    messages.success(request, words if count else _("Done: everything was in line."))
    return redirect("accounts:access")


def _previewed(request: HttpRequest, values: dict[str, str], rules: list[grants.Rule] | None) -> HttpResponse:
    try:
        changes, problems = mappings.preview(read_directory(), rules)
    except DirectoryUnavailable as error:
        return access_page(request, values, errors={"form": [str(error.detail)]}, status=503)
    preview = {
        "changes": changes[:SHOWN],
        "count": len(changes),
        "more": max(0, len(changes) - SHOWN),
        "problems": problems,
    }
    return access_page(request, values, preview=preview)


def access_page(
    request: HttpRequest,
    values: dict[str, str],
    *,
    person: User | None = None,
    given: found.Given | None = None,
    errors: dict[str, list[str]] | None = None,
    preview: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """`person` is who is shown under People, with what was typed for them; else whom the address asks for."""
    last = sync.last_pass()
    typed = request.GET.get("test", "").strip()
    people = found.people(person.username if person else request.GET.get("person", ""))
    projects = Namespace.objects.filter(kind="project")
    looked_for = request.GET.get("find", "").strip().lower()[:40].replace("\0", "\ufffd")
    context = {
        "directory": settings.DIRECTORY,
        "openid_groups": settings.OPENID.groups_claim if settings.OPENID else "",
        "rules": GroupMapping.objects.select_related("namespace"),
        "projects": list(projects.order_by("slug").values_list("slug", flat=True)),
        "listed": Paginator(projects.filter(slug__contains=looked_for).order_by("slug"), PAGE).get_page(
            request.GET.get("projects")
        ),
        "looked_for": looked_for,
        "roles": mappings.ROLES,
        "site_roles": mappings.SITE_ROLES,
        "people": people,
        "given": given or found.Given(),
        "today": timezone.localdate(),
        "values": values,
        "errors": errors or {},
        "preview": preview,
        "last": last,
        "age": sync.age_of(last) if last else None,
        "problems": [sentence(*problem) for problem in last.problems] if last else [],
        "passes": DirectorySync.objects.all()[:10],
        "tested": _test(typed) if typed else None,
    }
    return render(request, "accounts/access.html", context, status=status)


def _test(typed: str) -> Tested:
    """Asked of the directory itself: also for who never signed in."""
    if settings.DIRECTORY is None:
        return Tested(typed, problem=_("No directory is connected."))
    from accounts.ldap.connection import DirectoryAway  # noqa: PLC0415 # an extra: there where the setting is
    from accounts.ldap.reading import look_up  # noqa: PLC0415

    try:
        seen = look_up(typed)
    except DirectoryAway as error:
        return Tested(typed, problem=_("The directory cannot be asked: %(words)s") % {"words": error})
    if seen is None:
        return Tested(typed, problem=_("The directory knows nobody of this name, or more than one."))
    entry, groups = seen
    directory = grants.Directory(groups, sync.rules())
    dns = directory.groups_of(entry)
    projects = sync.projects()
    roles = [
        (projects.get(one.made_for, one.namespace), str(one.role), one.source.removeprefix(grants.SOURCE))
        for one in directory.grants_of(dns)
    ]
    return Tested(
        typed,
        shown=entry.display_name,
        dn=entry.dn,
        has_ended=entry.has_ended,
        groups=tuple(sorted(directory.groups[dn].name for dn in dns)),
        roles=tuple(sorted(roles)),
        site=tuple(
            (str(one.role), one.source.removeprefix(grants.SOURCE)) for one in directory.site_grants_of(dns)[:1]
        ),
    )


@require_safe
def users(request: HttpRequest) -> HttpResponse:
    """Who has an account: where it comes from, which roles, when they were here last, and whether it is over."""
    admin_of(request)
    words, state = request.GET.get("q", "").strip()[:150].replace("\0", "\ufffd"), request.GET.get("state", "")
    people = found.named_like(words)
    if state == "disabled":
        people = people.filter(is_active=False)
    elif state in ("ldap", "oidc", "local"):
        people = people.filter(source=state)
    page = Paginator(people.prefetch_related(found.WITH_ROLES), PAGE).get_page(request.GET.get("page"))
    rows = [(person, held(person.memberships.all()), site_role_in_words(person)) for person in page.object_list]
    return render(request, "accounts/users.html", {"page": page, "rows": rows, "q": words, "state": state})


@require_POST
@transaction.atomic
def disable_user(request: HttpRequest, user_id: int) -> HttpResponse:
    """Disable, or enable again. Who is disabled is out of every page, socket and token at once."""
    by = admin_of(request)
    # two admins who disable each other at the same moment would leave none
    admins = User.objects.filter(site_role=SiteRole.ADMIN, is_active=True).order_by("pk").select_for_update()
    if by.pk not in [one.pk for one in admins]:
        raise PermissionDenied(_("This is for admins of the site."))
    person = get_object_or_404(User, pk=user_id)
    enable = "enable" in request.POST
    if person == by:
        messages.error(request, _("You cannot disable yourself."))
    elif enable and person.disabled_by == "directory":
        messages.error(request, _("The directory says that this account is over; it is enabled there."))
    elif person.is_active != enable:
        if enable:
            person.is_active, person.disabled_by = True, ""
            person.save(update_fields=["is_active", "disabled_by"])
        else:
            people.disable(person)
        action = "user.enable" if enable else "user.disable"
        audit.record(by, action, target=person.username, after={"by": "admin"}, request=request)
    asked = request.GET.urlencode()
    return redirect(f"{reverse('accounts:users')}?{asked}" if asked else "accounts:users")
