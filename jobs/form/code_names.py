"""The files of the code a form stands for, and a command that starts one which is not among them: told, never refused."""

from __future__ import annotations

import difflib
import itertools
import posixpath
import re
import tarfile
from functools import lru_cache
from typing import Any

from django.core.files.storage import default_storage
from django.utils.translation import gettext as _

from accounts.models import User
from jobs import archives
from jobs.models import CodeArchive

MAX_READ = 16 * 2**20  # bytes packed; a larger archive is not read between two key strokes
SHOWN = 5
_STARTED = re.compile(
    r"(?:^|[\s;&|(])(?:python[0-9.]*(?:\s+-[uOBIsESq]+)*|(?:ba|da|z)?sh(?:\s+-[eux]+)*)\s+(?P<name>[\w./-]+\.(?:py|sh))(?=$|[\s;&|)])"
)
# it may be made, fetched or reached from another folder before it is started
_ELSEWHERE = re.compile(r"(?:^|[\s;&|(])(?:cd|pushd|git|curl|wget|tar|unzip|cp|mv|ln|tee|python[0-9.]*\s+-c)\s|>")


def missing(command: object, names: list[str] | None) -> list[str]:
    """A sentence for each file that the command starts and the code does not have."""
    if not names or not isinstance(command, str) or _ELSEWHERE.search(command):
        return []
    told = []
    for wanted in dict.fromkeys(match["name"] for match in _STARTED.finditer(command)):
        path = posixpath.normpath(wanted)
        if path.startswith(("/", "..")) or path in names:
            continue
        # the likeliest first
        near = difflib.get_close_matches(path, names, n=SHOWN, cutoff=0.3)
        there = some([*near, *(name for name in sorted(names) if name not in near)])
        told.append(_("%(name)s is not among the files: there are %(there)s.") % {"name": wanted, "there": there})
    return told


def some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


def names_of(user: User, data: dict[str, Any]) -> list[str] | None:
    """The paths of a document's code; None where they are not known, as those of an image or a repository."""
    code = data.get("code")
    if not isinstance(code, dict):
        return None
    if isinstance(code.get("files"), dict):
        return [str(name) for name in code["files"]]
    digest = code.get("upload")
    if not isinstance(digest, str):
        return None
    archive = archives.known_to(user, digest)
    if archive is None or archive.size > MAX_READ or not default_storage.exists(archive.storage_name):
        return None
    return list(_names_in(archive.storage_name))


def first_of(archive: CodeArchive) -> list[str]:
    """Some paths of an archive, and no more of it is read."""
    with default_storage.open(archive.storage_name) as stored, tarfile.open(fileobj=stored, mode="r|gz") as tar:
        return [entry.name for entry in itertools.islice(tar, SHOWN)]


@lru_cache(maxsize=128)
def _names_in(storage_name: str) -> tuple[str, ...]:
    # named by its content, so what was read once stays true
    with default_storage.open(storage_name) as stored, tarfile.open(fileobj=stored, mode="r:gz") as tar:
        return tuple(entry.name for entry in tar)
