"""Reading objects of which any field may be missing, null or of another type (RELIABILITY R35). Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def part(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping down there, {} if it is not."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def parts(value: Any, *keys: str) -> list[dict[str, Any]]:
    """The list of mappings down there, [] if it is not."""
    *way, last = keys
    found = part(value, *way).get(last)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def text(value: Any, *keys: str) -> str:
    *way, last = keys
    found = part(value, *way).get(last)
    return found if isinstance(found, str) else ""


def number(value: Any, *keys: str) -> int | None:
    *way, last = keys
    found = part(value, *way).get(last)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def moment(value: Any, *keys: str) -> datetime | None:
    """A time stamp of the API server."""
    written = text(value, *keys)
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def condition(value: Any, kind: str) -> dict[str, Any]:
    """The condition of that type, {} if there is none."""
    return next((entry for entry in parts(value, "status", "conditions") if entry.get("type") == kind), {})


def is_true(value: Any, kind: str) -> bool:
    return condition(value, kind).get("status") == "True"


def seen_at(event: Any) -> datetime:
    """When an event was seen last; each of its writers fills other fields."""
    written = (
        moment(event, "series", "lastObservedTime"),
        moment(event, "lastTimestamp"),
        moment(event, "eventTime"),
        moment(event, "metadata", "creationTimestamp"),
    )
    return next((at for at in written if at), _LONG_AGO)


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
