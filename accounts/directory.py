"""What the portal knows of a directory: where it is, and what an entry of a person or a group says (pure).

Attributes come as `{name in lower case: values}`, each value a string where it is UTF-8, else bytes.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Attributes: TypeAlias = Mapping[str, list[str | bytes]]

# what tells an entry from every other one that ever was: OpenLDAP, 389/FreeIPA, Active Directory
UUID_ATTRIBUTES = ("entryuuid", "nsuniqueid", "ipauniqueid", "objectguid")
ENDS = (
    "shadowexpire",
    "useraccountcontrol",
    "accountexpires",
    "nsaccountlock",
    "pwdaccountlockedtime",
    "logindisabled",
)
PERSON_ATTRIBUTES = (
    *UUID_ATTRIBUTES,
    *ENDS,
    "cn",
    "displayname",
    "mail",
    "uidnumber",
    "gidnumber",
)
MEMBER_ATTRIBUTES = ("member", "uniquemember")
GROUP_ATTRIBUTES = (*MEMBER_ATTRIBUTES, "memberuid", "gidnumber", "cn")
AD_DISABLED = 0x2
AD_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
AD_NEVER = (0, 0x7FFFFFFFFFFFFFFF)
LARGEST_ID = 2**31 - 1  # what the column holds; uid_t has one bit more, and nobody uses it


class EntryUnusable(ValueError):
    """The entry lacks what makes it somebody; the words say what, for whoever looks after the directory."""


@dataclass(frozen=True, slots=True)
class Search:
    """Where people or groups are looked for: `base?attribute?scope?filter`, as in an LDAP URL (RFC 4516)."""

    base: str
    attribute: str  # that holds the name which is typed, or the group's name
    scope: str  # base, one or sub
    filter: str


@dataclass(frozen=True, slots=True)
class Directory:
    """How the directory is asked. `tls` is start, ldaps or off; `patience` is seconds for each call."""

    url: str
    bind_dn: str
    bind_password: str
    people: Search
    groups: Search | None
    ca_file: str
    tls: str
    patience: float

    def __repr__(self) -> str:  # the password must not reach a log
        return f"Directory({self.url}, {self.people.base})"


@dataclass(frozen=True, slots=True)
class Entry:
    """A person as the directory tells of them. `subject` is the identity; everything else may change."""

    subject: str
    dn: str
    username: str
    display_name: str
    email: str
    uid_number: int | None
    gid_number: int | None
    has_ended: bool  # expired or disabled


@dataclass(frozen=True, slots=True)
class Group:
    """A group: `dn` and `members` are normalised, `member_names` are what posixGroup lists.

    `is_hearsay`: it was named at a sign-in, and what other groups there are is not known.
    """

    dn: str
    name: str
    members: frozenset[str]
    member_names: frozenset[str]
    gid_number: int | None
    is_hearsay: bool = False


@dataclass(frozen=True, slots=True)
class Everybody:
    """All that the directory says, read in one pass. `unusable` says which entries could not be read, and why."""

    people: dict[str, Entry]  # by subject
    groups: dict[str, Group]  # by normalised DN
    unusable: list[str]
    asked_at: datetime | None = None  # what happened since then, it may not know


def read_search(text: str, *, attribute: str) -> Search:
    """Read `base?attribute?scope?filter`; what is left out is `attribute`, `sub` and every object. Raise ValueError."""
    base, *rest = text.split("?", 3)
    name, scope, wanted = (*rest, "", "", "")[:3]
    if "=" not in base:
        raise ValueError(f"it must begin with the DN to look under, such as ou=people,dc=example,dc=org, not {base!r}")
    scope = scope or "sub"
    if scope not in ("base", "one", "sub"):
        raise ValueError(f"its scope must be base, one or sub, not {scope!r}")
    wanted = wanted or "(objectClass=*)"
    if not (wanted.startswith("(") and wanted.endswith(")")):
        raise ValueError(f"its filter must stand in brackets, not {wanted!r}")
    return Search(base=base.strip(), attribute=(name or attribute).strip(), scope=scope, filter=wanted)


def read_person(dn: str, attributes: Attributes, *, name: str, now: datetime) -> Entry:
    """The person an entry stands for; `name` is the attribute of the user name. Raise EntryUnusable."""
    username = unicodedata.normalize("NFC", _text(attributes, name.lower())).strip()
    if not username:
        raise EntryUnusable(f"{dn} has no {name}")
    return Entry(
        subject=f"ldap:{_uuid(dn, attributes)}",
        dn=dn,
        username=username[:150],
        display_name=(_text(attributes, "displayname") or _text(attributes, "cn") or username)[:200],
        email=_mail(_text(attributes, "mail")),
        uid_number=_number(attributes, "uidnumber"),
        gid_number=_number(attributes, "gidnumber"),
        has_ended=has_ended(attributes, now),
    )


def read_group(dn: str, attributes: Attributes, members: Iterable[str], *, name: str) -> Group:
    return Group(
        dn=dn,
        name=_text(attributes, name.lower()) or _text(attributes, "cn") or dn,
        members=frozenset(members),
        member_names=frozenset(_words(attributes, "memberuid")),
        gid_number=_number(attributes, "gidnumber"),
    )


def has_ended(attributes: Attributes, now: datetime) -> bool:
    """Does the entry say that its account is over? Each kind of directory says it in another way."""
    shadow = _integer(attributes, "shadowexpire")  # shadow(5): days since 1970; -1 is never
    if shadow is not None and 0 <= shadow <= (now - datetime(1970, 1, 1, tzinfo=UTC)).days:
        return True
    control = _integer(attributes, "useraccountcontrol")  # MS-ADTS 2.2.16: ADS_UF_ACCOUNTDISABLE
    if control is not None and control & AD_DISABLED:
        return True
    expires = _integer(attributes, "accountexpires")  # MS-ADTS: 100 ns since 1601
    if (
        expires is not None
        and expires not in AD_NEVER
        and expires <= (now - AD_EPOCH) // timedelta(microseconds=1) * 10
    ):
        return True
    # a lock with another time ends by itself, and the directory refuses the bind meanwhile
    is_locked_for_good = _text(attributes, "pwdaccountlockedtime") == "000001010000Z"
    says_so = (_text(attributes, name).lower() == "true" for name in ("nsaccountlock", "logindisabled"))
    return is_locked_for_good or any(says_so)


def _uuid(dn: str, attributes: Attributes) -> str:
    for name in UUID_ATTRIBUTES:
        for value in attributes.get(name, []):
            if name == "objectguid":
                raw = value if isinstance(value, bytes) else value.encode()
                if len(raw) == 16:
                    return str(uuid.UUID(bytes_le=raw))
            elif text := _decoded(value).strip().lower():
                return text[:100]
    raise EntryUnusable(f"{dn} shows the portal no entryUUID (nor nsUniqueId, ipaUniqueID, objectGUID)")


def _words(attributes: Attributes, name: str) -> list[str]:
    return [text for value in attributes.get(name, []) if (text := _decoded(value).strip())]


def _text(attributes: Attributes, name: str) -> str:
    return next(iter(_words(attributes, name)), "")


def _decoded(value: str | bytes) -> str:
    text = value if isinstance(value, str) else value.decode("utf-8", "replace")
    return text.replace("\0", "\ufffd")


def _mail(text: str) -> str:
    return text if "@" in text and len(text) <= 254 else ""


def _integer(attributes: Attributes, name: str) -> int | None:
    text = _text(attributes, name)
    return int(text) if text.lstrip("-").isdecimal() and len(text) <= 20 else None


def _number(attributes: Attributes, name: str) -> int | None:
    number = _integer(attributes, name)
    return number if number is not None and 0 <= number <= LARGEST_ID else None
