"""How far an agent has come, kept for the one that takes over when it dies: in the pod's own temporary folder."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, Optional

from trainhall.place import Place

MOST_BYTES = 8 * 2**20


class StateFile:
    """What it holds is true of points that the portal has taken; what came after it is read again.

    The program of the job can write there too: whatever cannot be read as what we wrote counts as nothing.
    """

    def __init__(self, place: Place) -> None:
        name = ".trainhall-agent-{}-{}-{}.json".format(place.job, place.attempt, place.rank)
        self.path = os.path.join(tempfile.gettempdir(), name)
        self._written = ""

    def load(self) -> Optional[Dict[str, Any]]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(handle, "rb") as file:
                found = json.loads(file.read(MOST_BYTES).decode())
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def save(self, state: Dict[str, Any]) -> None:
        """Whole or not at all; where there is no room, points are read again, which harms nobody."""
        text = json.dumps(state)
        if text == self._written or len(text) > MOST_BYTES:
            return
        new = self.path + ".new"
        try:
            if os.path.lexists(new):  # of an agent that died at it
                os.unlink(new)
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.replace(new, self.path)
        except OSError:
            return
        self._written = text
