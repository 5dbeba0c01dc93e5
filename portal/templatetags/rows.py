"""What the rows of a list of jobs say. Fifty rows are one page, so what is equal in many of them is rendered once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from jobs.lists.places import Place
from portal.templatetags.shown import first_values, moment, progress_words, short, span

register = template.Library()


@register.simple_tag
def pill(status: str) -> SafeString:
    """A status with icon and word: six of them a language, whatever the number of rows."""
    return _pill(status, get_language() or "")


@lru_cache(maxsize=200)
def _pill(status: str, language: str) -> SafeString:
    return render_to_string("jobs/_status.html", {"status": status})


@register.filter
def how(job: dict[str, Any]) -> str:
    """Why it stands where it stands, or how it goes, where there is no bar of progress."""
    reached = ", ".join(f"{key} {short(value)}" for key, value in first_values(job["headline"], 2))
    if job["status"] in ("running", "succeeded") and reached:
        return reached
    if job["status"] == "running" and job["started_at"] and not job["cancel_requested_at"]:
        return _("runs %(span)s, no progress reported") % {"span": _since(job["started_at"])}
    return str(job["reason"]["text"])


@register.filter
def progress_line(job: dict[str, Any]) -> str:
    """Beside the bar, where the metric has a column of its own: 72 %, ETA 3 h 10 m."""
    return progress_words(job, metrics=0)


@register.filter
def spent(job: dict[str, Any]) -> str:
    """How long it waits, runs or ran."""
    if job["status"] == "queued":
        return _("waits %(span)s") % {"span": _since(job["queued_at"])}
    if not job["started_at"]:
        return "–" if job["finished_at"] else _("starts")
    if job["finished_at"]:
        seconds = (moment(job["finished_at"]) - moment(job["started_at"])).total_seconds()  # type: ignore[operator]
        return _("ran %(span)s") % {"span": span(seconds)}
    return _("runs %(span)s") % {"span": _since(job["started_at"])}


def _since(text: str | None) -> str:
    then = moment(text)
    return span((timezone.now() - then).total_seconds()) if then else ""


@register.filter
def key_metric(job: dict[str, Any]) -> tuple[str, str]:
    """Name and last value of what people look at first."""
    for key, value in first_values(job["headline"], 1):
        return key, short(value)
    return "", ""


@register.filter
def asked(resources: dict[str, Any]) -> str:
    """What a job asks for in all, and over how many workers: 16xH100 (2w)."""
    if not resources["total_gpus"]:
        return _("no GPU") if resources["workers"] == 1 else _("no GPU (%(workers)sw)") % resources
    return f"{resources['total_gpus']}x{resources['gpu_type'] or 'GPU'} ({resources['workers']}w)"


@register.filter
def place(job: dict[str, Any]) -> str:
    """Where it stands in the line, if it does: #3 of 12."""
    return Place(job["queue_position"], job["queue_length"]).words if job["queue_position"] else ""


@register.simple_tag
def empty_jobs() -> list[dict[str, Any]]:
    """A row for the scripts to fill, of the same markup as all rows."""
    return [_EMPTY]


_EMPTY = {
    "id": "",
    "name": "",
    "status": "queued",
    "attempt": 0,
    "reason": {"code": "", "text": ""},
    "progress": None,
    "headline": {},
    "resources": {"workers": 1, "gpus": 0, "gpu_type": "", "total_gpus": 0},
    "held_by": None,
    "cancel_requested_at": None,
    "tags": [],
    "created_at": "",
    "queued_at": "",
    "started_at": None,
    "finished_at": None,
    "archived_at": None,
    "archived_by": None,
    "queue_position": None,
    "version": "",
}
