"""Secrets of a namespace: a lead sets and removes them, a job there uses them by name, and nobody reads them again.

A value leaves the database once: into the Secret of an attempt whose job names it, at its launch.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit
from accounts.models import Namespace, User
from jobs import credentials
from jobs.documents import iso
from jobs.exceptions import SecretGone, SpecError
from jobs.models import NamespaceSecret
from jobs.spec import SecretRef

VALUES, REGISTRY = "values", "registry"
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
KEY = re.compile(r"[A-Za-z0-9_.-]{1,100}")
REGISTRY_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,190}[a-z0-9])?(:[0-9]{1,5})?")
MOST_SECRETS, MOST_KEYS, LONGEST = 50, 50, 32 * 1024  # a Secret on a cluster holds 1 MiB in all
DOCKER_HUB = ("docker.io", "https://index.docker.io/v1/")  # as images say it, and as a kubelet looks it up
FIELDS = ("kind", "values", "registry", "username", "password")


def listed(namespace: Namespace) -> list[dict[str, Any]]:
    """Every secret by name: its keys, who set each and when."""
    found: dict[str, dict[str, Any]] = {}
    for row in NamespaceSecret.objects.filter(namespace=namespace).select_related("set_by").defer("ciphertext"):
        secret = found.setdefault(row.name, {"name": row.name, "kind": row.kind, "keys": []})
        secret["keys"].append({"key": row.key, "set_by": row.set_by.username, "set_at": iso(row.set_at)})
    return list(found.values())


def names_for_jobs(namespace: Namespace) -> list[str]:
    """What a job may name, as `secret/key`."""
    rows = NamespaceSecret.objects.filter(namespace=namespace, kind=VALUES).values_list("name", "key")
    return [f"{name}/{key}" for name, key in rows]


def names_in(namespaces: Iterable[Namespace]) -> list[dict[str, str]]:
    """The same for several namespaces, for the form, which does not know yet which one it will be: one query."""
    rows = NamespaceSecret.objects.filter(namespace__in=list(namespaces), kind=VALUES).select_related("namespace")
    return [{"name": f"{row.name}/{row.key}", "namespace": row.namespace.slug} for row in rows.defer("ciphertext")]


@transaction.atomic
def put(
    namespace: Namespace,
    name: str,
    given: Mapping[str, Any],
    *,
    by: User,
    request: HttpRequest | Request | None,
) -> None:
    """Set what is given: a value of null removes its key, and keys that are not named stay. Raise SpecError."""
    Namespace.objects.select_for_update().get(pk=namespace.pk)  # the limits are counted on what is there
    rows = NamespaceSecret.objects.filter(namespace=namespace, name=name)
    kinds = set(rows.values_list("kind", flat=True))
    kind, wanted = _read(name, given)
    if kinds - {kind}:
        raise _wrong("kind", _("this secret is of another kind; remove it first, or choose another name"))
    there = set(rows.values_list("key", flat=True))
    kept = (there | {key for key, value in wanted.items() if value is not None}) - {
        key for key, value in wanted.items() if value is None
    }
    if not kept:
        raise _wrong("values", _("no value would be left; delete the secret instead"))
    if len(kept) > MOST_KEYS:
        raise _wrong("values", _("a secret has at most %(most)d keys") % {"most": MOST_KEYS})
    others = NamespaceSecret.objects.filter(namespace=namespace).exclude(name=name).values("name").distinct().count()
    if others >= MOST_SECRETS:
        raise _wrong("name", _("a namespace has at most %(most)d secrets") % {"most": MOST_SECRETS})
    for key, value in wanted.items():
        if value is None:
            rows.filter(key=key).delete()
        else:
            fields = {"ciphertext": credentials.encrypt(value), "kind": kind, "set_by": by}
            NamespaceSecret.objects.update_or_create(namespace=namespace, name=name, key=key, defaults=fields)
    changed = {"set": sorted(wanted.keys() & kept), "removed": sorted(there - kept)}
    _tell(by, "set", namespace, name, {"kind": kind} | changed, request)


@transaction.atomic
def remove(namespace: Namespace, name: str, *, by: User, request: HttpRequest | Request | None) -> None:
    """The whole secret. Jobs that name it are held at their next launch, with a sentence. Raise Http404."""
    rows = NamespaceSecret.objects.filter(namespace=namespace, name=name.replace("\0", "\ufffd"))
    keys = list(rows.values_list("key", flat=True))
    if not keys:
        raise Http404
    rows.delete()
    _tell(by, "delete", namespace, name, {"removed": keys}, request)


def _tell(
    by: User, verb: str, namespace: Namespace, name: str, after: dict[str, Any], request: HttpRequest | Request | None
) -> None:
    audit.record(by, f"secret.{verb}", target=name, namespace=namespace.slug, after=after, request=request)


def _read(name: str, given: Mapping[str, Any]) -> tuple[str, dict[str, str | None]]:
    """The kind, and the value of each key."""
    if not NAME.fullmatch(name):
        raise _wrong("name", _("1 to 63 small letters, digits and dashes, such as team-keys"))
    if unknown := sorted(set(map(str, given)) - set(FIELDS)):
        raise _wrong(unknown[0][:100], _("there is no such field; known are %(names)s") % {"names": ", ".join(FIELDS)})
    kind = given.get("kind", VALUES)
    if kind == REGISTRY:
        return REGISTRY, _registry(given)
    if kind != VALUES:
        raise _wrong("kind", _("must be values or registry"))
    values = given.get("values")
    if not isinstance(values, dict) or not values:
        raise _wrong("values", _("must map each key to its value, or to null to remove it"))
    for key, value in values.items():
        if not isinstance(key, str) or not KEY.fullmatch(key):
            raise _wrong("values", _("a key has 1 to 100 letters, digits, dots, dashes and underscores"))
        if value is not None and not _is_value(value):
            # the value itself is in no message
            raise _wrong(f"values.{key}", _("must be text of 1 to 32768 characters, without NUL"))
    return VALUES, dict(values)


def _registry(given: Mapping[str, Any]) -> dict[str, str | None]:
    address = str(given.get("registry") or "").strip().lower()
    if not REGISTRY_NAME.fullmatch(address):
        raise _wrong("registry", _("the address as images begin with it, such as ghcr.io or registry.example.com:5000"))
    for field in ("username", "password"):
        if not _is_value(given.get(field)):
            raise _wrong(field, _("must be text of 1 to 32768 characters, without NUL"))
    return {address: json.dumps({"username": given["username"], "password": given["password"]})}


def _is_value(value: Any) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST:
        return False
    return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


def _wrong(field: str, text: str) -> SpecError:
    return SpecError(f"{field}: {text}", fields={field: [text]})


# For jobs


def check(namespace: Namespace, secrets: Iterable[SecretRef]) -> None:
    """Raise SpecError where a job names what its namespace does not have."""
    wanted = [secret for secret in secrets if secret.from_secret]
    if not wanted:
        return
    there = names_for_jobs(namespace)
    have = _("there are %(names)s") % {"names": ", ".join(there)} if there else _("it has none; a lead sets them")
    wrong = {
        f"secrets.{secret.name}": [
            _("%(place)s has no secret %(wanted)s for jobs; %(have)s")
            % {"place": namespace.slug, "wanted": f"{secret.from_secret}/{secret.key}", "have": have}
        ]
        for secret in wanted
        if f"{secret.from_secret}/{secret.key}" not in there
    }
    if wrong:
        field, messages = next(iter(wrong.items()))
        raise SpecError(f"{field}: {messages[0]}", fields=wrong)


def values_for(namespace: Namespace, secrets: Iterable[SecretRef]) -> dict[str, str]:
    """The value of each variable that a job takes from the namespace's secrets, now. Raise SecretGone."""
    found = {}
    for secret in secrets:
        if not secret.from_secret:
            continue
        rows = NamespaceSecret.objects.filter(namespace=namespace, name=secret.from_secret, kind=VALUES, key=secret.key)
        row = rows.first()
        if row is None:
            raise SecretGone(
                _(
                    "%(place)s has no secret %(wanted)s any more, which the variable %(name)s is to come from. "
                    "A lead sets it anew; then release the job."
                )
                % {
                    "place": namespace.slug,
                    "wanted": f"{secret.from_secret}/{secret.key}",
                    "name": secret.name,
                }
            )
        found[secret.name] = credentials.decrypt(bytes(row.ciphertext))
    return found


def registry_of(image: str) -> str:
    """Where an image comes from, as a container engine reads its name."""
    first, slash, _rest = image.partition("/")
    return first.lower() if slash and ("." in first or ":" in first or first == "localhost") else DOCKER_HUB[0]


def pull_config(namespace: Namespace, images: Iterable[str]) -> str:
    """A docker config with what the namespace has for these images' registries; "" where it has nothing for them."""
    registries = {registry_of(image) for image in images}
    rows = NamespaceSecret.objects.filter(namespace=namespace, kind=REGISTRY, key__in=registries)
    auths = {}
    for row in rows:
        account = json.loads(credentials.decrypt(bytes(row.ciphertext)))
        pair = base64.b64encode(f"{account['username']}:{account['password']}".encode()).decode()
        auths[DOCKER_HUB[1] if row.key == DOCKER_HUB[0] else row.key] = {**account, "auth": pair}
    return json.dumps({"auths": auths}) if auths else ""
