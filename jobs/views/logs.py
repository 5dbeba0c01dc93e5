"""The log viewer of a job's page, and the same lines as plain text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from jobs.api.logs import text_response
from jobs.exceptions import SpecError
from jobs.logs.asked import PARAMETERS, read_wanted, same_lines
from jobs.logs.levels import NAMES
from jobs.logs.lines import read_lines
from jobs.logs.search import Anything, find_before
from jobs.logs.stretches import PAGE_BYTES, Wanted
from jobs.models import Job
from jobs.scope import visible_job
from jobs.views.job import job_page

LINES_AT_FIRST = 2000
LEVEL_WORDS = {
    "error": _("errors"),
    "warning": _("warnings"),
    "info": _("info"),
    "debug": _("debug"),
    "plain": _("the rest"),
}


@dataclass(frozen=True, slots=True)
class LevelChoice:
    name: str
    word: str | Promise
    is_chosen: bool


def chosen(query: QueryDict) -> Wanted:
    """The lines that are asked for. Raise Http404 for a worker or an attempt that cannot be."""
    try:
        return read_wanted(_only(query, *PARAMETERS))
    except SpecError as error:
        raise Http404 from error


def chosen_leniently(query: QueryDict) -> tuple[Wanted, list[str]]:
    """The same for the page, which says what of the level and of the times cannot be read, and shows the lines without."""
    readable, problems = _only(query, *PARAMETERS), []
    for name in ("level", "from", "to"):
        try:
            read_wanted(_only(query, name))
        except SpecError as problem:
            problems.append(str(problem))
            readable.pop(name)
    return chosen(readable), problems


def _only(query: QueryDict, *names: str) -> QueryDict:
    kept = QueryDict(mutable=True)
    for name in names:
        if values := [value for value in query.getlist(name) if value]:
            kept.setlist(name, values)
    return kept


@require_GET
def job_logs(request: HttpRequest, job_id: str) -> HttpResponse:
    wanted, problems = chosen_leniently(request.GET)
    same = same_lines(wanted)
    shown: dict[str, Any] = {
        "tab": "logs",
        "worker": wanted.worker or "",
        "attempt": wanted.attempt,
        "filters": same,
        "levels": [LevelChoice(name, LEVEL_WORDS[name], level in wanted.levels) for name, level in NAMES.items()],
        "since": _for_field(wanted.since),
        "until": _for_field(wanted.until),
        "zone": timezone.get_current_timezone_name(),
        "problems": problems,
        "q": request.GET.get("q", ""),
        "times": request.GET.get("ts") != "0",
        "wrap": request.GET.get("wrap") == "1",
        "same_lines": f"?{urlencode(same)}" if same else "",
        "download": f"?{urlencode({'text': 1, **same})}",
    }
    made: dict[str, Any] = {name: lambda _job, value=value: value for name, value in shown.items()}
    return job_page(
        request,
        job_id,
        "jobs/logs.html",
        attempts=lambda job: list(range(1, job.attempts.count() + 1)),
        lines=lambda job: _first_lines(job, wanted),
        **made,
    )


def _first_lines(job: Job, wanted: Wanted) -> list[dict[str, Any]]:
    if wanted.is_sparse:
        return find_before(job.pk, Anything(), wanted, limit=LINES_AT_FIRST).lines
    return read_lines(
        job.pk,
        before=wanted.before,
        worker=wanted.worker,
        attempt=wanted.attempt,
        limit=LINES_AT_FIRST,
        most_bytes=PAGE_BYTES,
    )


def _for_field(moment: float | None) -> str:
    """As a field of the browser takes it, in the time zone of the portal; scripts put it into the reader's."""
    if moment is None:
        return ""
    return timezone.localtime(datetime.fromtimestamp(moment, UTC)).strftime("%Y-%m-%dT%H:%M:%S")


@require_GET
def job_log_raw(request: HttpRequest, job_id: str) -> StreamingHttpResponse:
    """The lines as they were written, in a page where the browser's own search works."""
    job = visible_job(request, job_id)
    response = text_response(job, chosen(request.GET))
    response["Content-Disposition"] = "inline"
    return response
