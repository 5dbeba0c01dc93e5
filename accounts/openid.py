"""What the portal knows of an OpenID Connect provider: where it is, and what its claims say of a person (pure)."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accounts.directory import Entry, Group

SOURCE = "oidc"
LONGEST_SUBJECT = 200  # characters of User.subject
LONGEST_SUB = 255  # OpenID Connect Core 2
MOST_GROUPS = 1000  # of one person; more is no list that people keep


class ClaimsUnusable(ValueError):
    """The claims lack what makes them somebody; the words say what, for whoever looks after the provider."""


@dataclass(frozen=True, slots=True)
class Provider:
    """How the provider is asked. `patience` is seconds for all calls of a sign-in.

    Without `groups_claim` its groups give no roles.
    """

    issuer: str
    client_id: str
    client_secret: str
    button: str
    username_claim: str
    groups_claim: str
    ca_file: str
    patience: float

    def __repr__(self) -> str:  # the secret must not reach a log
        return f"Provider({self.issuer}, {self.client_id})"


def subject_of(issuer: str, sub: str) -> str:
    """Who somebody is, for good: a `sub` is unique at its issuer only. An issuer's URL has no `#`."""
    subject = f"{SOURCE}:{issuer}#{sub}"
    if len(subject) <= LONGEST_SUBJECT:
        return subject
    return f"{SOURCE}:sha256:{hashlib.sha256(subject.encode()).hexdigest()}"


def read_person(provider: Provider, claims: Mapping[str, Any]) -> Entry:
    """The person these claims tell of; everything but `sub` is a label. Raise ClaimsUnusable."""
    sub = claims.get("sub")
    if not isinstance(sub, str) or not 0 < len(sub) <= LONGEST_SUB or not sub.isprintable():
        raise ClaimsUnusable(f"sub must be 1 to {LONGEST_SUB} printable characters")
    email = _text(claims, "email")
    if "@" not in email or len(email) > 254 or claims.get("email_verified") is False:
        email = ""
    username = _text(claims, provider.username_claim) or email.partition("@")[0]
    return Entry(
        subject=subject_of(provider.issuer, sub),
        dn=f"{provider.issuer}#{sub}",
        username=username[:150],
        display_name=(_text(claims, "name") or username)[:200],
        email=email,
        uid_number=None,
        gid_number=None,
        has_ended=False,
    )


def read_groups(provider: Provider, claims: Mapping[str, Any], entry: Entry) -> list[Group]:
    """The groups the claims name, as rules know groups. Their names are the provider's own: no DN of a rule is one of them."""
    told = claims.get(provider.groups_claim) if provider.groups_claim else None
    values = [told] if isinstance(told, str) else told if isinstance(told, list) else []
    texts = (_clean(value) for value in values[:MOST_GROUPS] if isinstance(value, str))
    names = [name for name in dict.fromkeys(texts) if 0 < len(name) <= 300]
    return groups_named(names, issuer=provider.issuer, member=entry.dn)


def groups_named(names: Iterable[str], *, issuer: str, member: str) -> list[Group]:
    return [
        Group(
            dn=f"{issuer}#{name}",
            name=name,
            members=frozenset({member}),
            member_names=frozenset(),
            gid_number=None,
            is_hearsay=True,
        )
        for name in names
    ]


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return _clean(value) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode().replace("\0", "\ufffd").strip()
