"""stop, hold, release, clone: what is asked of jobs that are there."""

from __future__ import annotations

import argparse
from typing import Any, Callable, Dict, List

from trainhall.client import Client, Job, quote
from trainhall.errors import TrainhallError
from trainhall.tables import show_json


def add_commands(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("stop", parents=[common], help="stop jobs")
    verb.add_argument("jobs", nargs="+", metavar="job")
    verb.add_argument("--reason", default="")
    verb.set_defaults(run=lambda chosen: _each(chosen, lambda job: job.stop(chosen.reason)))
    verb = verbs.add_parser("hold", parents=[common], help="keep jobs from starting")
    verb.add_argument("jobs", nargs="+", metavar="job")
    verb.set_defaults(run=lambda chosen: _each(chosen, Job.hold))
    verb = verbs.add_parser("release", parents=[common], help="let held jobs start")
    verb.add_argument("jobs", nargs="+", metavar="job")
    verb.set_defaults(run=lambda chosen: _each(chosen, Job.release))
    verb = verbs.add_parser("clone", parents=[common], help="submit a job again, changed or not")
    verb.add_argument("job")
    verb.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="such as parameters.lr=1e-4")
    verb.set_defaults(run=clone)


def clone(chosen: argparse.Namespace) -> None:
    job = Job(Client(), {"id": chosen.job}).clone(_changes(chosen.set))
    _show([job], chosen.json)


def _each(chosen: argparse.Namespace, act: Callable[[Job], Job]) -> None:
    """One after the other; what was done to the first is shown also where the second is refused."""
    client = Client()
    for job_id in chosen.jobs:
        _show([act(Job(client, {"id": quote(job_id)}))], chosen.json)


def _show(jobs: List[Job], as_json: bool) -> None:
    for job in jobs:
        if as_json:
            show_json(job.data)
            continue
        note = ", asked to stop" if job.data.get("cancel_requested_at") and not job.is_final else ""
        held = ", held" if job.data.get("held_by") else ""
        print("{} {}{}{}".format(job.id, job.status, note, held))


def _changes(texts: List[str]) -> Dict[str, Any]:
    """Dotted names become nested documents."""
    changes: Dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        parts = name.split(".")
        if not equals or not all(parts):
            raise TrainhallError("usage", "--set takes FIELD=VALUE, not {!r}.".format(text))
        inner = changes
        for part in parts[:-1]:
            inner = inner.setdefault(part, {})
        inner[parts[-1]] = _value(value)
    return changes


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
