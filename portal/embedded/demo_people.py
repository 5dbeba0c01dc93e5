"""The people and groups of the demo directory, which tests sign in as, too: a lab of 200 in four countries (pure).

The cast is in it (alice, bob and carol in vision, which carol leads; dave in speech), and what real directories hold: names with
commas, brackets and umlauts, in kanji, in mixed case; groups in groups; accounts that have ended; groups nobody is in.
"""

from __future__ import annotations

import base64
import hashlib
import os
import uuid
from collections.abc import Iterator, Sequence

from portal.embedded.slapd import READER_DN, SUFFIX

PEOPLE = f"ou=people,{SUFFIX}"
GROUPS = f"ou=groups,{SUFFIX}"
LONG_AGO = 15_000  # days since 1970, as shadowExpire counts: in 2011
CAST = (
    ("alice", "Alice Arai"),
    ("bob", "Bob Becker"),
    ("carol", "Carol Chen"),
    ("dave", "Dave Dupont"),
    ("erin", "Erin Évora"),
)
# the name that is typed, the name that is shown, the RDN
ODD = (
    ("j.doe", "Doe, John (Ops)", r"cn=Doe\, John (Ops)"),
    ("hash#tag", "Hash #1 + Plus", r"cn=\#1 Hash \+ Plus"),
    ("quote", 'The "Quoted" One', r"cn=The \"Quoted\" One"),
    ("jürgen", "Jürgen Müller-Lüdenscheidt", "cn=Jürgen Müller-Lüdenscheidt"),
    ("山田太郎", "山田 太郎", "cn=山田 太郎"),
    ("wang.wei", "王伟", "cn=王伟"),
    ("MixedCase", "Mixed Case", "cn=Mixed Case"),
    ("star*", "Star (*)", r"cn=Star (*)"),
    ("back\\slash", "Back Slash", r"cn=Back\\slash"),
)
ENDED = (("zoe", "Zoe Zweig"), ("yuri", "Yuri Yagi"))
TEAMS = ("vision", "speech", "robotics", "nlp", "genomics", "climate")
EVERYBODY = 200
FIRST_UID = 10_000


def entries(password: str, *, reader_password: str) -> Iterator[str]:
    """Every entry in the words of LDIF, parents first. All people have the one password."""
    yield entry(SUFFIX, objectClass=["organization", "dcObject"], o="Example", dc="example")
    for unit in ("people", "groups", "services"):
        yield entry(f"ou={unit},{SUFFIX}", objectClass="organizationalUnit", ou=unit)
    yield entry(
        READER_DN,
        objectClass=["applicationProcess", "simpleSecurityObject"],
        cn="trainhall",
        userPassword=hashed(reader_password),
    )
    names = []
    for number, (uid, shown, rdn) in enumerate(everybody()):
        ends = {"shadowExpire": str(LONG_AGO)} if uid in dict(ENDED) else {}
        names.append((uid, f"{rdn},{PEOPLE}"))
        yield person(f"{rdn},{PEOPLE}", uid, shown, password, number=number, **ends)
    yield from groups(dict(names))


def everybody() -> Iterator[tuple[str, str, str]]:
    """uid, the name that is shown, and the RDN of each of them."""
    for uid, shown in (*CAST, *ENDED):
        yield uid, shown, f"uid={uid}"
    yield from ODD
    for number in range(EVERYBODY - len(CAST) - len(ENDED) - len(ODD)):
        yield f"person{number:03}", f"Person {number}", f"uid=person{number:03}"


def groups(dns: dict[str, str]) -> Iterator[str]:
    """40 of them: teams and their leads, ml-* with groups inside, posix groups, empty ones, a circle."""
    cast = {name: dns[name] for name, _shown in CAST}
    yield group("vision", [cast["alice"], cast["bob"], f"cn=vision-leads,{GROUPS}"])
    yield group("vision-leads", [cast["carol"]])
    yield group("speech", [cast["dave"]])
    for number, team in enumerate(TEAMS[2:]):
        yield group(team, [dns[f"person{member:03}"] for member in range(number * 20, number * 20 + 20)])
        yield group(f"{team}-leads", [dns[f"person{number * 20:03}"]])
    yield group("ml-all", [f"cn=ml-kernels,{GROUPS}", f"cn=ml-compilers,{GROUPS}"])
    yield group("ml-kernels", [cast["erin"], *(dns[uid] for uid, *_rest in ODD)])
    yield group("ml-compilers", [dns[f"person{number:03}"] for number in range(100, 110)])
    yield group("circle-a", [f"cn=circle-b,{GROUPS}", cast["erin"]])
    yield group("circle-b", [f"cn=circle-a,{GROUPS}"])
    yield group("ended", [dns[uid] for uid, _shown in ENDED])
    for number in range(18):
        yield group(f"course-{2008 + number}", [dns[f"person{number:03}"]])
    yield entry(
        f"cn=storage,{GROUPS}", objectClass="posixGroup", cn="storage", gidNumber="20000", memberUid=["alice", "dave"]
    )
    yield entry(f"cn=users,{GROUPS}", objectClass="posixGroup", cn="users", gidNumber="10000")
    for number in range(3):
        empty = f"cn=empty-{number},{GROUPS}"
        yield entry(empty, objectClass="posixGroup", cn=f"empty-{number}", gidNumber=str(21_000 + number))


def person(dn: str, uid: str, shown: str, password: str, *, number: int, **more: str) -> str:
    return entry(
        dn,
        objectClass=["inetOrgPerson", "posixAccount", "shadowAccount"],
        uid=uid,
        cn=shown,
        sn=shown.split()[-1],
        displayName=shown,
        mail=f"person{number}@example.org",
        uidNumber=str(FIRST_UID + number),
        gidNumber="10000",
        homeDirectory=f"/home/{FIRST_UID + number}",
        userPassword=hashed(password),
        **more,
    )


def group(name: str, members: Sequence[str]) -> str:
    return entry(f"cn={name},{GROUPS}", objectClass="groupOfNames", cn=name, member=list(members))


def entry(dn: str, **attributes: str | list[str]) -> str:
    # the same ones at every start, as if the directory had been there all the time
    lines = [_line("dn", dn), _line("entryUUID", str(uuid.uuid5(uuid.NAMESPACE_X500, dn)))]
    for name, values in attributes.items():
        lines += [_line(name, value) for value in ([values] if isinstance(values, str) else values)]
    return "\n".join(lines)


def _line(name: str, value: str) -> str:
    """RFC 2849: what is not plain ASCII, or begins or ends oddly, is written in base64."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith((":", "<")):
        return f"{name}: {value}"
    return f"{name}:: {base64.b64encode(value.encode()).decode()}"


def hashed(password: str) -> str:
    salt = os.urandom(8)
    digest = hashlib.sha1(password.encode() + salt, usedforsecurity=False).digest()  # {SSHA}, which slapd knows unaided
    return "{SSHA}" + base64.b64encode(digest + salt).decode()
