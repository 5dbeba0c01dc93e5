"""The one place where text from people becomes a name on the cluster or in a URL (pure).

A clean, free name stays as it is; any other becomes its readable part and a hash of the identity. A name that is given
is stored under a unique constraint and never computed again.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container

LONGEST = 40
PREFIXES = {"personal": "u-", "project": "p-"}
CLEAN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
HASHED = re.compile(r".*-x[0-9a-f]{10}")  # looks like one of ours, so nobody may choose it


def is_clean(name: str) -> bool:
    return len(name) <= LONGEST and CLEAN.fullmatch(name) is not None and HASHED.fullmatch(name) is None


def readable(name: str) -> str:
    """What is left of a name in letters that every cluster takes: at least one, at most 40."""
    plain = unicodedata.normalize("NFKD", name[: 4 * LONGEST]).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST].strip("-") or "name"


def hashed(name: str, subject: str, taken: Container[str], *, prefix: str = "") -> str:
    """`<readable>-x<10 hex of sha256(subject)>`; hashed again in the rare case that another identity has it.

    A user name that was made so for this identity stays as it is: its namespace is not `u-a-x…-x…`.
    """
    seed = subject
    while True:
        digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:10]
        if (candidate := f"{prefix}{readable(name.removesuffix(f'-x{digest}'))}-x{digest}") not in taken:
            return candidate
        seed = f"{seed}+"


def kubernetes_name(kind: str, name: str, subject: str, taken: Container[str]) -> str:
    """The name of a new namespace on the cluster; `taken` are all that were ever given."""
    prefix = PREFIXES[kind]
    if is_clean(name) and prefix + name not in taken:
        return prefix + name
    return hashed(name, subject, taken, prefix=prefix)


def slug(name: str, subject: str, taken: Container[str]) -> str:
    """The name of a new namespace in URLs and job documents; people and projects share one set of them."""
    if is_clean(name) and name not in taken:
        return name
    return hashed(name, subject, taken)


def spelling(name: str) -> str:
    """What names that look alike have in common: width, case and invisible characters do not count."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(char for char in folded if unicodedata.category(char) not in ("Cf", "Cc")).strip()


def is_canonical(name: str) -> bool:
    """Could this be an account's name at all: no invisible characters, no full-width twins, nothing at the ends?"""
    return name == unicodedata.normalize("NFKC", name) == name.strip() and name.isprintable() and 0 < len(name) <= 150
