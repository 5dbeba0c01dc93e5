"""How times, lengths and numbers are written on pages."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from jobs.documents import iso
from jobs.timeline import Phase

register = template.Library()

UNITS = (_lazy("%d d"), _lazy("%d h"), _lazy("%d m"), _lazy("%d s"))
NARROWEST = 0.6  # percent of the timeline: a phase of a second is still seen


@register.filter
def moment(value: str | datetime | None) -> datetime | None:
    """A time of a job document as a datetime."""
    return parse_datetime(value) if isinstance(value, str) else value


@register.filter
def as_iso(value: str | datetime | None) -> str:
    return (value if isinstance(value, str) else iso(value)) or ""


@register.filter
def as_told(value: Any) -> str:
    """Before and after of the audit trail in a line: `role: member, source: ldap:vision`."""
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(f"{key}: {'–' if inner is None else inner}" for key, inner in value.items())


@register.filter
def span(seconds: float | None) -> str:
    """The two largest units of a length of time: 6 h 12 m."""
    if seconds is None:
        return ""
    whole = max(0, round(seconds))
    counts = (whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60)
    first = next((place for place, count in enumerate(counts) if count), 3)
    shown = range(first, min(first + 2, len(UNITS)))
    # only what is shown is translated: a page of a list says a hundred of these
    return " ".join(str(UNITS[place]) % counts[place] for place in shown if counts[place]) or str(UNITS[3]) % 0


@register.filter
def age(value: str | datetime | None) -> str:
    """How long ago, in one unit, as a column of a list has room for."""
    then = moment(value)
    if then is None:
        return ""
    seconds = max(0.0, (timezone.now() - then).total_seconds())
    for length, words in zip((86400, 3600, 60), UNITS, strict=False):
        if seconds >= length:
            return str(words) % (seconds // length)
    return str(UNITS[3]) % seconds


@register.filter
def percent(fraction: float | str | None) -> str:
    """Nothing where there is no progress: a template hands over "" then."""
    return _("%d %%") % round(fraction * 100) if isinstance(fraction, int | float) else ""


@register.filter
def short(value: Any) -> str:
    """A value of a metric in at most four figures; NaN and infinity stay what they are."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        value = int(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


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


@register.filter
def words(text: str) -> list[str]:
    return text.split()


@register.filter
def plain_number(value: float | None) -> str:
    """For attributes, where every language writes a point."""
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


@register.filter
def shape(resources: dict[str, Any]) -> str:
    """What a job asks for in all, and over how many workers: 16 A100 (2 w)."""
    if not resources["total_gpus"]:
        return "0"
    whole = f"{resources['total_gpus']} {resources['gpu_type']}".strip()
    return (
        whole
        if resources["workers"] == 1
        else _("%(gpus)s (%(workers)s w)") % {"gpus": whole, "workers": resources["workers"]}
    )


@register.filter
def progress_text(job: dict[str, Any]) -> str:
    """How it goes: 72 %, loss 0.312, ETA 3 h 10 m."""
    return progress_words(job, metrics=1)


def progress_words(job: dict[str, Any], *, metrics: int) -> str:
    """With the values of so many metrics; where reports have stopped, their silence stands in place of an estimate."""
    progress = job["progress"]
    if not progress:
        return ""
    parts = []
    if progress["fraction"] is not None:
        parts.append(percent(progress["fraction"]))
    elif progress["step"] is not None:
        parts.append(_("step %(step)s") % {"step": f"{progress['step']:,}"})
    parts += [f"{key} {short(value)}" for key, value in first_values(job["headline"], metrics)]
    if progress["eta"] is not None:
        parts.append(_("ETA %(span)s") % {"span": span(progress["eta"])})
    parts += silence(progress)
    return ", ".join(parts)


def silence(progress: dict[str, Any]) -> list[str]:
    """How long nobody has reported, once that is longer than usual."""
    if not progress["stale_at"] or time.time() < progress["stale_at"]:
        return []
    return [_("no report for %(span)s") % {"span": span(time.time() - progress["at"])}]


@register.filter
def origin(request: HttpRequest) -> str:
    """The address of this portal as the person reached it, for commands to copy."""
    return f"{request.scheme}://{request.get_host()}"


@register.filter
def first_namespace(navigation: Any) -> str:
    """One's own namespace, or the first: where a first job may go."""
    found = list(navigation["namespaces"])
    return next((one.slug for one in found if one.kind == "personal"), found[0].slug if found else "NAMESPACE")


@register.simple_tag
def once_key() -> str:
    """For a form that makes something: a second click makes nothing."""
    return f"form-{uuid.uuid4()}"


@register.simple_tag(takes_context=True)
def query_with(context: dict[str, Any], **changes: str) -> str:
    """The query string of this page with some parameters set, or left out where empty; back on its first page."""
    query = context["request"].GET.copy()
    query.pop("page", None)
    for name, value in changes.items():
        if value:
            query[name] = value
        else:
            query.pop(name, None)
    return str(query.urlencode())


@register.filter
def clock(seconds: float | None) -> str:
    """A time of a log line, in the time zone of the portal."""
    if not seconds:
        return ""
    return timezone.localtime(datetime.fromtimestamp(seconds, tz=UTC)).strftime("%H:%M:%S")


@register.filter
def progress_detail(job: dict[str, Any]) -> str:
    """Beside the large percentage: where it is, and when it is done."""
    progress = job["progress"]
    if not progress:
        return ""
    parts = []
    if progress["epoch"] is not None:
        parts.append(_("epoch %(epoch)s") % {"epoch": short(progress["epoch"])})
    if progress["step"] is not None and progress["total"]:
        parts.append(
            _("step %(step)s of %(total)s") % {"step": short(progress["step"]), "total": short(progress["total"])}
        )
    elif progress["step"] is not None:
        parts.append(_("step %(step)s") % {"step": short(progress["step"])})
    if progress["eta"] is not None:
        at = timezone.localtime(timezone.now() + timedelta(seconds=progress["eta"]))
        parts.append(_("done about %(at)s (%(span)s)") % {"at": at.strftime("%H:%M"), "span": span(progress["eta"])})
    parts += silence(progress)
    return " · ".join(parts)


@register.filter
def last_value(last: Any) -> str:
    """The last value of a series, whether it comes bare or with its step."""
    return short(last.get("value", "")) if isinstance(last, dict) else short(last)


FIELD_LABELS = {
    "name": _lazy("Name"),
    "namespace": _lazy("Namespace"),
    "runtime": _lazy("Runtime"),
    "script_name": _lazy("File name"),
    "script": _lazy("Script"),
    "code_files": _lazy("Files"),
    "git_url": _lazy("Repository"),
    "git_ref": _lazy("Branch, tag or commit"),
    "command": _lazy("Command"),
    "param": _lazy("Parameters"),
    "env": _lazy("Environment"),
    "secret": _lazy("Secrets"),
    "volume": _lazy("Volumes of the namespace"),
    "gpus": _lazy("GPUs per worker"),
    "workers": _lazy("Workers"),
    "gpu_type": _lazy("GPU type"),
    "cpus": _lazy("CPUs per worker"),
    "memory": _lazy("RAM per worker"),
    "shm": _lazy("Shared memory"),
    "time_limit": _lazy("Time limit"),
    "priority": _lazy("Priority"),
    "launcher": _lazy("Launcher"),
    "parameter_servers": _lazy("Parameter servers"),
    "retries": _lazy("Retries"),
    "stop_grace": _lazy("Grace on stop"),
    "tags": _lazy("Tags"),
    "yaml": _lazy("YAML"),
}


@register.filter
def field_label(name: str) -> Any:
    """What the form calls a field."""
    return FIELD_LABELS.get(name, name)
