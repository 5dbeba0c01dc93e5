"""Volumes of a namespace: an admin offers claims of the cluster, a job mounts them by name, and one may be its people's home.

A row is an offer and no right: the claim is made on the cluster by its admins, and what a file lets one do is said by its owner
and mode, for the numbers that the job's processes have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit
from accounts.models import Namespace, User
from jobs import mounts
from jobs.cluster.registry import LOCAL, chosen, kinds
from jobs.cluster.rendering import Home
from jobs.documents import iso
from jobs.exceptions import SpecError, VolumeGone
from jobs.models import NamespaceVolume
from jobs.spec import JobSpec, Volume

OURS = "runs"  # the portal's own claim, which every job has at /runs
MOST = 50
FIELDS = ("path", "read_only", "is_home")


def listed(namespace: Namespace) -> list[dict[str, Any]]:
    """Every volume by name: where it is mounted, what may be done with it, who offered it and when."""
    rows = NamespaceVolume.objects.filter(namespace=namespace).select_related("set_by")
    return [
        {"name": row.name, **_as_told(row), "set_by": row.set_by.username, "set_at": iso(row.set_at)} for row in rows
    ]


def names_in(namespaces: Iterable[Namespace]) -> list[dict[str, Any]]:
    """What jobs may name in any of these, for the form, which does not know yet which one it will be: one query."""
    rows = NamespaceVolume.objects.filter(namespace__in=list(namespaces)).select_related("namespace")
    return [{"name": row.name, **_as_told(row), "namespace": row.namespace.slug} for row in rows]


def _as_told(row: NamespaceVolume) -> dict[str, Any]:
    return {"path": row.path, "read_only": row.read_only, "is_home": row.is_home}


@transaction.atomic
def put(
    namespace: Namespace, name: str, given: Mapping[str, Any], *, by: User, request: HttpRequest | Request | None
) -> None:
    """Offer a claim, or offer it otherwise. Raise SpecError."""
    Namespace.objects.select_for_update().get(pk=namespace.pk)  # the limits are counted on what is there
    wanted = _read(name, given)
    others = list(NamespaceVolume.objects.filter(namespace=namespace).exclude(name=name))
    if len(others) >= MOST:
        raise _wrong("name", _("a namespace has at most %(most)d volumes") % {"most": MOST})
    if wanted["is_home"] and (home := next((row for row in others if row.is_home), None)):
        raise _wrong("is_home", _("%(name)s is the home here; a namespace has one at most") % {"name": home.name})
    before = NamespaceVolume.objects.filter(namespace=namespace, name=name).first()
    fields = {**wanted, "set_by": by}
    row, _new = NamespaceVolume.objects.update_or_create(namespace=namespace, name=name, defaults=fields)
    audit.record(
        by,
        "volume.set",
        target=name,
        namespace=namespace.slug,
        before=_as_told(before) if before else None,
        after=_as_told(row),
        request=request,
    )


@transaction.atomic
def remove(namespace: Namespace, name: str, *, by: User, request: HttpRequest | Request | None) -> None:
    """No longer offered; the claim and all that is in it stay on the cluster. Raise Http404."""
    row = NamespaceVolume.objects.filter(namespace=namespace, name=name.replace("\0", "\ufffd")).first()
    if row is None:
        raise Http404
    before = _as_told(row)
    row.delete()
    audit.record(by, "volume.delete", target=name, namespace=namespace.slug, before=before, request=request)


def _read(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if not mounts.CLAIM.fullmatch(name):
        raise _wrong("name", _("1 to 61 small letters, digits and dashes, as the claim is called, such as datasets"))
    if name == OURS:
        raise _wrong("name", _("that claim is the portal's own, and every job has it at /runs"))
    if unknown := sorted(set(map(str, given)) - set(FIELDS)):
        raise _wrong(unknown[0][:100], _("there is no such field; known are %(names)s") % {"names": ", ".join(FIELDS)})
    path, read_only, is_home = given.get("path"), given.get("read_only", False), given.get("is_home", False)
    for field, value in (("read_only", read_only), ("is_home", is_home)):
        if not isinstance(value, bool):
            raise _wrong(field, _("must be true or false"))
    if read_only and is_home:
        raise _wrong("read_only", _("a home is written to; leave out one of the two"))
    if not isinstance(path, str):
        raise _wrong("path", _("is required: where jobs mount it, such as /data"))
    if mounts.USER in path and not is_home:
        raise _wrong("path", _("only a home has %(user)s in its path") % {"user": mounts.USER})
    if len(path) > mounts.LONGEST or (wrong := mounts.trouble(path.replace(mounts.USER, "user") if is_home else path)):
        raise _wrong("path", wrong if len(path) <= mounts.LONGEST else _("is too long"))
    return {"path": path, "read_only": read_only, "is_home": is_home}


def _wrong(field: str, text: str) -> SpecError:
    return SpecError(f"{field}: {text}", fields={field: [text]})


# For jobs


@dataclass(frozen=True, slots=True)
class Mounted:
    """What the offers of now add to a job."""

    home: Home | None
    read_only_claims: frozenset[str]


def filled_in(spec: JobSpec, *, namespace: Namespace, user: User) -> JobSpec:
    """The same with what its volumes leave open. Raise SpecError for one that is not offered, or not like that."""
    if not spec.volumes:
        return spec
    cluster = chosen(spec.cluster, namespace.slug)
    if kinds().get(cluster) == LOCAL:
        raise _wrong("volumes", _not_here())
    offers = {row.name: row for row in NamespaceVolume.objects.filter(namespace=namespace)}
    home = _home(offers.values(), user)
    wrong: dict[str, list[str]] = {}
    found = []
    for place, volume in enumerate(spec.volumes):
        offer = offers.get(volume.name)
        if offer is None:
            wrong[f"volumes[{place}].name"] = [_not_offered(namespace, volume.name, offers)]
            continue
        if offer.read_only and volume.read_only is False:
            wrong[f"volumes[{place}].read_only"] = [
                _("%(name)s is offered read-only; leave it out") % {"name": offer.name}
            ]
        path = volume.path or offer.path
        if offer.is_home and not volume.path:
            if home is None:
                wrong[f"volumes[{place}].path"] = [_("your name is none of a folder, so say where it shall lie")]
                continue
            path = home.mount
        read_only = offer.read_only if volume.read_only is None else volume.read_only
        found.append(Volume(name=volume.name, path=path, read_only=read_only))
        if home and _meets(home, found[-1]):
            wrong[f"volumes[{place}].path"] = [
                _("meets your home, which is mounted at %(path)s; choose another") % {"path": home.mount}
            ]
    if not wrong:
        wrong = {
            f"volumes[{place}].path": [text]
            for place, text in mounts.clashes({place: volume.path for place, volume in enumerate(found)})
        }
    if wrong:
        field, messages = next(iter(wrong.items()))
        raise SpecError(f"{field}: {messages[0]}", fields=wrong)
    return replace(spec, volumes=tuple(found))


def mounted(namespace: Namespace, *, user: User, cluster: str) -> Mounted:
    """What the offers of now add to a job of this person there, without asking whether they still go together."""
    if kinds().get(cluster) == LOCAL:
        return Mounted(None, frozenset())
    offers = list(NamespaceVolume.objects.filter(namespace=namespace))
    return Mounted(_home(offers, user), frozenset(row.name for row in offers if row.read_only))


def check_at_launch(spec: JobSpec, *, namespace: Namespace, home: Home | None) -> None:
    """Raise VolumeGone where what was offered at its submission is offered no more, or meets a home of since then."""
    if not spec.volumes:
        return
    there = set(NamespaceVolume.objects.filter(namespace=namespace).values_list("name", flat=True))
    for volume in spec.volumes:
        about = {"place": namespace.slug, "name": volume.name, "path": volume.path}
        if volume.name not in there:
            raise VolumeGone(
                _(
                    "%(place)s is offered no volume %(name)s any more, which the job is to have at %(path)s. "
                    "An admin offers it anew; then release the job."
                )
                % about
            )
        if home and _meets(home, volume):
            raise VolumeGone(
                _(
                    "Homes of %(place)s are mounted at %(home)s since it was submitted, which meets its volume %(name)s at "
                    "%(path)s. Clone it with another path."
                )
                % (about | {"home": home.mount})
            )


def _home(offers: Iterable[NamespaceVolume], user: User) -> Home | None:
    """That of the person whose numbers the processes have, by the name that the directory has for them."""
    offer = next((row for row in offers if row.is_home), None)
    if offer is None:
        return None
    name = user.directory_name if user.source == "ldap" and user.directory_name else user.username
    return mounts.home_of(offer.name, offer.path, name)


def _meets(home: Home, volume: Volume) -> bool:
    is_home_itself = (volume.name, volume.path) == (home.claim, home.mount)
    return not is_home_itself and mounts.overlap(volume.path, home.mount)


def _not_offered(namespace: Namespace, name: str, offers: Iterable[str]) -> str:
    """In the same words for one that is nowhere and for one of another namespace."""
    names = ", ".join(offers)
    have = _("there are %(names)s") % {"names": names} if names else _("it has none; an admin offers them")
    return _("%(place)s has no volume %(name)s; %(have)s") % {"place": namespace.slug, "name": name, "have": have}


def _not_here() -> str:
    others = ", ".join(name for name, kind in kinds().items() if kind != LOCAL)
    if others:
        return _("jobs on the local cluster have no volumes; name another with cluster: %(names)s") % {"names": others}
    return _("jobs on the local cluster have no volumes, and this portal has no other; leave it out")
