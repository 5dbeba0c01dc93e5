"""stop, hold, release, archive, clone: what is asked of jobs that are there."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Callable, Dict, List

from trainhall.client import Client, Job, quote
from trainhall.commands.submitting import RESOURCES, SIMPLE, announce, from_environment
from trainhall.commands.watching import follow
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
    verb = verbs.add_parser("archive", parents=[common], help="take jobs that are over out of the lists")
    verb.add_argument("jobs", nargs="+", metavar="job")
    verb.set_defaults(run=lambda chosen: _each(chosen, Job.archive))
    verb = verbs.add_parser("unarchive", parents=[common], help="put archived jobs back into the lists")
    verb.add_argument("jobs", nargs="+", metavar="job")
    verb.set_defaults(run=lambda chosen: _each(chosen, Job.unarchive))
    verb = verbs.add_parser("clone", parents=[common], help="submit a job again, changed or not")
    verb.add_argument("job")
    verb.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="such as parameters.lr=1e-4")
    verb.add_argument("--unset", action="append", default=[], metavar="FIELD", help="leave a field of the job out")
    for option, field, kind in SIMPLE:
        if field != "runtime":
            verb.add_argument(option, type=kind, dest="set_" + field, metavar=field.upper())
    for option, field, kind in RESOURCES:
        verb.add_argument(option, type=kind, dest="set_resources." + field, metavar=field.upper())
    verb.add_argument(
        "--secret", action="append", default=[], metavar="NAME", help="its value is taken from your own environment"
    )
    verb.add_argument("--latest", action="store_true", help="of code from git the branch, not the commit that ran")
    verb.add_argument("--wait", action="store_true", help="show the logs and end with the job's exit code")
    verb.set_defaults(run=clone)


def clone(chosen: argparse.Namespace) -> int:
    client = Client()
    client.agent = "trainhall-cli/0.1"
    job = Job(client, {"id": chosen.job}).clone(changes_of(chosen), latest=chosen.latest)
    for change in [] if chosen.json else job.data.get("changes") or []:
        before, after = change.get("before") or "not set", change.get("after") or "not set"
        told = change["lines"] if change.get("lines") else "{} -> {}".format(before, after)
        print("{}: {}".format(change.get("label") or change.get("field"), told), file=sys.stderr)
    announce(job, chosen.json and not chosen.wait)
    return follow(job, as_json=chosen.json) if chosen.wait else 0


def changes_of(chosen: argparse.Namespace) -> Dict[str, Any]:
    """The options as fields by their dotted names."""
    changes: Dict[str, Any] = {}
    for name, value in vars(chosen).items():
        if name.startswith("set_") and value is not None:
            changes[name[len("set_") :]] = value
    for text in chosen.set:
        name, equals, value = text.partition("=")
        if not equals or not all(name.split(".")):
            raise TrainhallError("usage", "--set takes FIELD=VALUE, not {!r}.".format(text))
        changes[name] = _value(value)
    changes.update(dict.fromkeys(chosen.unset))
    for name in chosen.secret:
        changes["secrets." + name] = {"value": from_environment(name)}
    return changes


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
        archived = ", archived" if job.data.get("archived_at") else ""
        print("{} {}{}{}{}".format(job.id, job.status, note, held, archived))


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
