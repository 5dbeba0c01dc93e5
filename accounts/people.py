"""Making people and projects: whoever exists has a namespace of their own, from the same transaction on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import connection, transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit, hints, namespaces
from accounts.directory import Entry
from accounts.models import ApiToken, AuditEvent, Membership, Namespace, User
from accounts.reasons import MANUAL, PERSONAL
from accounts.roles import Role, SiteRole

FROM_ENTRY = ("display_name", "email", "uid_number", "gid_number")  # what the directory decides, whenever it is read


class NameRefused(ValueError):
    """The name cannot be given; the words say why."""


def check_form(username: str) -> None:
    if not namespaces.is_canonical(username):
        raise NameRefused(
            _("A user name has 1 to 150 characters: no spaces at its ends, no invisible and no full-width ones.")
        )


def check_looks_like_no_other(username: str) -> None:
    """Raise NameRefused for a name that people would take for another account's."""
    wanted = namespaces.spelling(username)
    for other in User.objects.values_list("username", flat=True).iterator():
        if namespaces.spelling(other) == wanted:
            raise NameRefused(_("The user name looks like %(other)s, which exists.") % {"other": other})


@transaction.atomic
def ensure_person(
    username: str, *, password: str | None = None, display_name: str = "", site_role: str = SiteRole.NONE
) -> User:
    """The person of this name, made with a personal namespace if there is none. One who exists is left as they are."""
    check_form(username)
    if person := User.objects.filter(username=username).first():
        return person
    _one_at_a_time()
    if person := User.objects.filter(username=username).first():
        return person
    check_looks_like_no_other(username)
    person = User.objects.create_user(
        username, password, display_name=display_name or username, site_role=SiteRole(site_role)
    )
    audit.record(None, "user.create", target=username, after={"site_role": str(site_role), "source": person.source})
    give_personal_namespace(person)
    return person


@transaction.atomic
def from_directory(entry: Entry, *, source: str = "ldap") -> User:
    """The account of an entry, made with a personal namespace if there is none yet, and brought in line with it.

    The entry's UUID decides, or the `sub` of an OpenID Connect provider: another spelling is the same account, and a
    new entry with an old name a new one.
    """
    person = User.objects.filter(subject=entry.subject).first()
    if person is None:
        _one_at_a_time()
        person = User.objects.filter(subject=entry.subject).first()
    if person is None:
        person = User(subject=entry.subject, username=label_of(entry), source=source, display_name=entry.display_name)
        person.set_unusable_password()
        bring_in_line(person, entry)
        person.save()
        audit.record(None, "user.create", target=person.username, after={"source": source, "entry": entry.dn})
        give_personal_namespace(person)
        return person
    if changed := bring_in_line(person, entry):
        person.save(update_fields=changed)
    if person.disabled_by == "directory" and not entry.has_ended:
        revive([person.subject])
        person.refresh_from_db(fields=["is_active", "disabled_by"])
    return person


def bring_in_line(person: User, entry: Entry) -> list[str]:
    """Write what the entry says into the person, unsaved; the answer names the fields that are different now.

    Whether the account goes on is not among them: see `end` and `revive`.
    """
    wanted = {name: getattr(entry, name) for name in FROM_ENTRY}
    wanted |= {"directory_dn": entry.dn[:1000], "directory_name": entry.username[:150]}
    changed = [name for name, value in wanted.items() if getattr(person, name) != value]
    for name in changed:
        setattr(person, name, wanted[name])
    return changed


def label_of(entry: Entry) -> str:
    """The user name of a new account: the directory's own where that is free and looks like nobody else's."""
    try:
        check_form(entry.username)
        check_looks_like_no_other(entry.username)
    except NameRefused:
        taken = set(User.objects.values_list("username", flat=True))
        return namespaces.hashed(entry.username, entry.subject, taken)
    return entry.username


@transaction.atomic
def end(subjects: Iterable[str]) -> list[str]:
    """The directory says that these accounts are over, or knows them no more: they cannot sign in. Answer: who it was.

    The last active admin's goes on: nobody could put anything right any more.
    """
    wanted = list(subjects)
    if not wanted:
        return []
    # two admins who end at the same moment, each at a sign-in, would leave none: whoever is second sees who went first
    list(User.objects.filter(site_role=SiteRole.ADMIN, is_active=True).order_by("pk").select_for_update())
    ending = User.objects.filter(subject__in=wanted, is_active=True)
    persons = list(ending.order_by("pk").select_for_update())
    if any(person.site_role == SiteRole.ADMIN for person in persons) and not _others_are_admins(persons):
        # `sync` tells it as a problem of its pass
        persons = [person for person in persons if person.site_role != SiteRole.ADMIN]
    if persons:
        User.objects.filter(pk__in=[person.pk for person in persons]).update(
            is_active=False, disabled_by="directory", session_generation=F("session_generation") + 1
        )
        AuditEvent.objects.bulk_create(
            audit.event(None, "user.disable", target=person.username, after={"by": "directory"}) for person in persons
        )
        hints.rights_changed()
    return [person.username for person in persons]


def disable(person: User) -> None:
    """By an admin: sessions and tokens of now never come back, also where the account is enabled again."""
    person.is_active, person.disabled_by = False, "admin"
    person.session_generation += 1
    person.save(update_fields=["is_active", "disabled_by", "session_generation"])
    ApiToken.objects.filter(user=person, revoked_at=None).update(revoked_at=timezone.now())


def _others_are_admins(persons: Iterable[User]) -> bool:
    admins = User.objects.filter(site_role=SiteRole.ADMIN, is_active=True)
    return admins.exclude(pk__in=[person.pk for person in persons]).exists()


@transaction.atomic
def revive(subjects: Iterable[str]) -> None:
    """The directory knows these accounts again. Whom an admin has disabled, be it a moment ago, stays so."""
    ended = User.objects.filter(subject__in=list(subjects), disabled_by="directory")
    persons = list(ended.select_for_update())
    User.objects.filter(pk__in=[person.pk for person in persons]).update(is_active=True, disabled_by="")
    AuditEvent.objects.bulk_create(
        audit.event(None, "user.enable", target=person.username, after={"by": "directory"}) for person in persons
    )


@transaction.atomic
def give_personal_namespace(person: User) -> Namespace:
    """The person's own namespace, which they lead. A new person never gets one that was another's."""
    if own := Namespace.objects.filter(owner=person).first():
        return own
    _one_at_a_time()
    own = _create_namespace("personal", person.username, person.subject, owner=person)
    _give_role(person, own, Role.LEAD, source=PERSONAL)
    return own


@transaction.atomic
def ensure_project(slug: str, *, members: Mapping[str, str], description: str = "") -> Namespace:
    """The project of this name with at least these roles; a role that an admin has changed since stays as it is."""
    project = Namespace.objects.filter(slug=slug).first()
    if project is None:
        _one_at_a_time()
        if not namespaces.is_clean(slug):
            raise NameRefused(_("A project's name has 1 to 40 of a-z, 0-9 and -."))
        project = _create_namespace("project", slug, f"project:{slug}", description=description)
    elif project.kind != "project":
        raise NameRefused(_("%(slug)s is somebody's own namespace.") % {"slug": slug})
    people = User.objects.in_bulk(list(members), field_name="username")
    for username, role in members.items():
        _give_role(people[username], project, Role(role))
    return project


@transaction.atomic
def make_project(
    slug: str, *, by: User, description: str = "", request: HttpRequest | Request | None = None
) -> Namespace:
    """A new project, by an admin. Raise NameRefused where the name is none or is taken."""
    _one_at_a_time()
    if Namespace.objects.filter(slug=slug).exists():
        raise NameRefused(_("There is a namespace %(slug)s already.") % {"slug": slug})
    project = ensure_project(slug, members={}, description=description[:200])
    audit.record(
        by, "namespace.create", target=slug, namespace=slug, after={"description": description}, request=request
    )
    return project


@transaction.atomic
def project_for_group(dn: str, *, name: str) -> Namespace:
    """The project of a directory group, by the rule of a pattern; another group of the same name gets its own."""
    if found := Namespace.objects.filter(made_for=dn).first():
        return found
    _one_at_a_time()
    project = _create_namespace("project", name, f"group:{dn}", made_for=dn)
    audit.record(None, "namespace.create", target=project.slug, namespace=project.slug, after={"group": dn})
    return project


def _create_namespace(
    kind: str,
    name: str,
    subject: str,
    *,
    owner: User | None = None,
    description: str = "",
    made_for: str | None = None,
) -> Namespace:
    slugs, given = set(), set()
    for slug, kubernetes_name in Namespace.objects.values_list("slug", "kubernetes_name"):
        slugs.add(slug)
        given.add(kubernetes_name)
    return Namespace.objects.create(
        slug=namespaces.slug(name, subject, slugs),
        kubernetes_name=namespaces.kubernetes_name(kind, name, subject, given),
        kind=kind,
        owner=owner,
        description=description,
        made_for=made_for,
    )


def _give_role(person: User, namespace: Namespace, role: Role, *, source: str = MANUAL) -> None:
    # also where it has ended: what was taken away in the meantime does not come back by itself
    _membership, is_new = Membership.also_ended.get_or_create(
        user=person, namespace=namespace, source=source, defaults={"role": role}
    )
    if is_new:
        after = {"role": str(role), "source": source}
        audit.record(None, "membership.create", target=person.username, namespace=namespace.slug, after=after)


def _one_at_a_time() -> None:
    """Names are chosen by looking at those that are given: two who look at once would choose the same."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('accounts.people'))")
