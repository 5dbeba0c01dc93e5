"""How times, lengths and numbers are written on pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from jobs.documents import iso
from jobs.timeline import Phase

register = template.Library()

NARROWEST = 0.6  # percent of the timeline: a phase of a second is still seen


@register.filter
def moment(value: str | datetime | None) -> datetime | None:
    """A time of a job document as a datetime."""
    return parse_datetime(value) if isinstance(value, str) else value


@register.filter
def as_iso(value: str | datetime | None) -> str:
    return (value if isinstance(value, str) else iso(value)) or ""


@register.filter
def span(seconds: float | None) -> str:
    """The two largest units of a length of time: 6 h 12 m."""
    if seconds is None:
        return ""
    whole = max(0, round(seconds))
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return _("%(days)d d %(hours)d h") % {"days": days, "hours": hours}
    if hours:
        return _("%(hours)d h %(minutes)d m") % {"hours": hours, "minutes": minutes}
    if minutes:
        return _("%(minutes)d m %(seconds)d s") % {"minutes": minutes, "seconds": whole % 60}
    return _("%(seconds)d s") % {"seconds": whole}


@register.filter
def age(value: str | datetime | None) -> str:
    """How long ago, in one unit, as a column of a list has room for."""
    then = moment(value)
    if then is None:
        return ""
    seconds = max(0.0, (timezone.now() - then).total_seconds())
    for length, words in ((86400, _("%d d")), (3600, _("%d h")), (60, _("%d m"))):
        if seconds >= length:
            return words % (seconds // length)
    return _("%d s") % seconds


@register.filter
def percent(fraction: float | None) -> str:
    return "" if fraction is None else _("%d %%") % int(fraction * 100)


@register.filter
def short(value: Any) -> str:
    """A value of a metric in at most four figures; NaN and infinity stay what they are."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int) or value.is_integer() and abs(value) < 1e6 else f"{value:.4g}"


@register.filter
def first_values(headline: dict[str, Any], count: int) -> list[tuple[str, Any]]:
    return list(headline.items())[:count]


@register.filter
def launchers(runtimes: Iterable[Any]) -> list[str]:
    """Every launcher that some runtime allows."""
    return list(dict.fromkeys(name for runtime in runtimes for name in runtime.launchers))


@dataclass(frozen=True, slots=True)
class Band:
    """A phase with its place on the timeline, in percent."""

    phase: Phase
    x: str
    width: str


@register.filter
def bands(phases: Sequence[Phase]) -> list[Band]:
    whole = sum(phase.seconds for phase in phases) or 1.0
    widths = [max(NARROWEST, 100 * phase.seconds / whole) for phase in phases]
    scale = 100 / (sum(widths) or 1.0)
    found, x = [], 0.0
    for phase, width in zip(phases, widths, strict=True):
        found.append(Band(phase, f"{x:.2f}%", f"{width * scale:.2f}%"))
        x += width * scale
    return found
