"""A whole portal for a benchmark, as `manage.py up` starts it, and this process let into its database."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.portal.running import Portal  # noqa: E402 - a benchmark is started by its path


@contextmanager
def portal() -> Iterator[Portal]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-bench-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when this runs as root
    place = Portal(folder / "data")
    try:
        place.start()
        _join(place)
        yield place
    finally:
        if not place.has_ended:
            place.interrupt()
        place.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


def _join(place: Portal) -> None:
    """Django of this process with the settings of that portal: rows are made, and people signed in, without pages."""
    os.environ |= {**place.environment, "DJANGO_SETTINGS_MODULE": "portal.settings.dev"}
    import django

    django.setup()


def cookie_of(name: str) -> str:
    """A session of one of the demo people, as the header says it."""
    from django.conf import settings

    from accounts.models import User
    from tests.metrics.sockets import session_of

    return f"{settings.SESSION_COOKIE_NAME}={session_of(User.objects.get(username=name))}"


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[18]


class Table:
    """One line per figure: what, how much, the bar."""

    def __init__(self, title: str) -> None:
        print(title)
        self.missed = 0

    def line(self, what: str, value: float, bar: float, *, unit: str = "ms", beside: str = "") -> None:
        good = value <= bar
        self.missed += not good
        print(
            f"  {what:46} {value:>9.0f} {unit}   bar {bar:.0f} {unit}  {'ok' if good else 'MISSED':7} {beside}",
            flush=True,
        )


def quiet(seconds: float) -> None:
    """Let the portal come to rest, so that what is measured is an idle machine."""
    time.sleep(seconds)
