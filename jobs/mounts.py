"""Where volumes may lie in a pod, and where somebody's home does. Pure.

Of what is reserved nothing may be hidden or replaced: not by a mount there, nor inside, nor around.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobs.cluster.rendering import RUNS, SDK_FOLDER, WORKSPACE, Home

RESERVED = (
    WORKSPACE,
    RUNS,
    SDK_FOLDER,
    *("/run", "/var/run", "/tmp", "/dev", "/proc", "/sys"),  # noqa: S108 - as a pod has them
    *("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot"),
)
USER = "{user}"
LONGEST = 200
CLAIM = re.compile(r"[a-z0-9]([a-z0-9-]{0,59}[a-z0-9])?")  # the pod's volume is called v-<name>
_SEGMENT = re.compile(r"[\w.@+-]+")  # of any alphabet; a colon is what no mount path may have


def trouble(path: str) -> str:
    """Why nothing may be mounted there, in words for a person; "" where it may."""
    if not path.startswith("/") or path == "/" or len(path) > LONGEST:
        return "must be a path from the root, such as /data"
    if not all(map(_is_segment, path[1:].split("/"))):
        return "must be a plain path such as /data/imagenet: letters, digits and ._@+- between single slashes"
    for folder in RESERVED:
        if overlap(path, folder):
            return f"cannot be: the pod needs {folder} itself, and nothing may lie there, inside or around it"
    return ""


def overlap(one: str, other: str) -> bool:
    """Whether two mounts would be the same, or one inside the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def clashes(paths: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Which mounts are the same as an earlier one, or one inside the other, and why they may not be; "" is none yet."""
    placed: dict[int, str] = {}
    for place, path in paths.items():
        if not path:
            continue
        if earlier := next((other for other in placed.values() if overlap(path, other)), ""):
            yield place, f"meets the volume at {earlier}: of two mounts none may be the other, or inside it"
        placed[place] = path


def home_of(claim: str, path: str, user: str) -> Home | None:
    """`/home` holds a folder of each person; `/home/{user}` is one person's own. None for a name that is no folder's."""
    if not _is_segment(user) or len(user) > LONGEST:
        return None
    mount = path.replace(USER, user)
    if trouble(mount):  # somebody may be called `tmp`
        return None
    return Home(claim=claim, mount=mount, path=mount if USER in path else f"{mount}/{user}")


def _is_segment(text: str) -> bool:
    return bool(_SEGMENT.fullmatch(text)) and text not in (".", "..")
