"""Files below some folders while a training writes there: a bounded walk, and the name a folder gives what is inside."""

from __future__ import annotations

import os
import re
from typing import Callable, FrozenSet, Iterator, List, Optional

DEEPEST = 6
LEFT_OUT = frozenset({"node_modules", "__pycache__", "site-packages", "wandb", "mlruns"})
PARTS = frozenset({"train", "training", "val", "valid", "validation", "eval", "evaluation", "test"})
# folders whose name says nothing about what is inside
NOISE = re.compile(
    r"runs?|logs?|tb|tensorboard|tb_logs|lightning_logs|csv_logs|vis_data|outputs?|events?|summar(?:y|ies)|version_\d+"
    r"|.*\d{6,}.*|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.*|\d{4}-\d\d-\d\d.*"
)


class Prefixes:
    """`validation/` for logs/validation; nothing for the first folder, unless it names a part of the data."""

    def __init__(self) -> None:
        self.first: Optional[str] = None  # the folder that needs no name of its own

    def of(self, root: str, folder: str, *, is_new: bool) -> str:
        if self.first is None and is_new:
            named_part = os.path.basename(folder).lower() in PARTS
            self.first = os.path.dirname(folder) if named_part and folder != root else folder
        below = parts_below(self.first, folder) if self.first is not None else None
        if below is None:
            below = [name for name in parts_below(root, folder) or [] if not NOISE.fullmatch(name)]
        return "/".join([*below[-2:], ""]) if below else ""


def parts_below(parent: Optional[str], folder: str) -> Optional[List[str]]:
    """The names from `parent` down to `folder`; None where it does not lie below."""
    if parent is None:
        return None
    if folder == parent:
        return []
    return folder[len(parent) + 1 :].split(os.sep) if folder.startswith(parent + os.sep) else None


def files_below(
    folder: str,
    is_wanted: Callable[[str], bool],
    left: List[int],
    *,
    left_out: FrozenSet[str] = LEFT_OUT,
    depth: int = DEEPEST,
) -> Iterator[str]:
    """Regular files whose name is wanted, links not followed. `left` counts the entries that may still be looked at."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        left[0] -= 1
        if left[0] < 0:
            return
        try:
            if entry.is_dir(follow_symlinks=False):
                hidden = entry.name.startswith(".") or entry.name in left_out
                if depth and not hidden and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                    for path in files_below(entry.path, is_wanted, left, left_out=left_out, depth=depth - 1):
                        yield path
            elif is_wanted(entry.name) and entry.is_file(follow_symlinks=False):
                yield entry.path
        except OSError:
            continue
