"""ps, show, why, logs: how jobs stand."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Dict, Iterable, Iterator

from trainhall.client import Client, Job
from trainhall.settings import load
from trainhall.tables import age, line_as_seen, plain, show_json, show_table

ACTIVE = "queued,starting,running"
INTERRUPTED = 130


def add_commands(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("ps", parents=[common], help="list jobs")
    verb.add_argument("-a", "--all", action="store_true", help="also those that have ended")
    verb.add_argument("-n", "--namespace")
    verb.add_argument("--mine", action="store_true")
    verb.add_argument("--archived", action="store_true", help="also those that were archived; with -a")
    verb.add_argument("--status", help="one or several, by commas")
    verb.add_argument("--limit", type=int, default=50)
    verb.set_defaults(run=ps)
    verb = verbs.add_parser("show", parents=[common], help="everything about a job")
    verb.add_argument("job")
    verb.set_defaults(run=show)
    verb = verbs.add_parser("why", parents=[common], help="why a job waits, or ended")
    verb.add_argument("job")
    verb.set_defaults(run=why)
    verb = verbs.add_parser("logs", parents=[common], help="what a job printed")
    verb.add_argument("job")
    verb.add_argument("-f", "--follow", action="store_true", help="until the job has ended")
    verb.add_argument("--worker", help="a number, or a name such as worker-0")
    verb.add_argument("--attempt", type=int, metavar="N", help="only of this attempt")
    verb.add_argument(
        "--grep", metavar="RE2", help="only lines in which this is found; the portal searches the whole log"
    )
    verb.add_argument("-i", "--ignore-case", action="store_true", help="with --grep: capitals do not matter")
    verb.add_argument("-F", "--fixed-strings", action="store_true", help="with --grep: plain text, no pattern")
    verb.add_argument("--level", metavar="LEVEL", help="one or several, by commas: error, warning, info, debug, plain")
    verb.add_argument("--since", metavar="TIME", help="written since: 10m (ago), 12:03, 2026-11-30 12:03")
    verb.add_argument("--until", metavar="TIME", help="written before")
    verb.set_defaults(run=logs)


def ps(chosen: argparse.Namespace) -> None:
    client = Client()
    user = (load().get("username") or client.get("tokens/current/").get("username")) if chosen.mine else None
    status = chosen.status or (None if chosen.all else ACTIVE)
    archived = {"archived": "1"} if chosen.archived else {}
    jobs = client.jobs(most=max(1, chosen.limit), namespace=chosen.namespace, user=user, status=status, **archived)
    if chosen.json:
        show_json({"results": [job.data for job in jobs]})
        return
    show_table(
        ("ID", "NAME", "STATUS", "NAMESPACE", "USER", "GPUS", "DONE", "AGE", "REASON"), [_row(job) for job in jobs]
    )


def show(chosen: argparse.Namespace) -> None:
    job = Client().job(chosen.job)
    if chosen.json:
        show_json(job.data)
        return
    data = job.data
    head = [
        ("job", "{} {}".format(job.id, data.get("name") or "")),
        ("status", "{}{}".format(job.status, ": " + job.reason if job.reason else "")),
        ("namespace", data.get("namespace")),
        ("user", data.get("user")),
        ("attempt", data.get("attempt")),
        ("progress", _done(data)),
        ("created", data.get("created_at")),
        ("started", data.get("started_at")),
        ("finished", data.get("finished_at")),
        ("exit code", job.exit_code),
        ("page", job.url),
    ]
    for name, value in head:
        if value not in (None, ""):
            print("{:<10} {}".format(name, plain(value)))
    for key, value in sorted((data.get("headline") or {}).items()):
        print("{:<10} {} = {}".format("", plain(key), value))
    if data.get("workers"):
        print("")
        rows = [
            (worker.get("name"), worker.get("phase"), worker.get("node"), worker.get("exit_code"), worker.get("reason"))
            for worker in data["workers"]
        ]
        show_table(("WORKER", "PHASE", "NODE", "EXIT", "REASON"), rows)


def why(chosen: argparse.Namespace) -> None:
    said = Client().job(chosen.job).why()
    if chosen.json:
        show_json(said)
        return
    reason = said.get("reason") or {}
    place = ", number {} in the queue".format(said["position"]) if said.get("position") else ""
    print("{}{}".format(said.get("status"), place))
    cause = said.get("cause")
    if cause:
        _show_cause(cause)
    elif reason.get("text"):
        print(plain(reason["text"]))


def _show_cause(cause: Dict[str, Any]) -> None:
    """The sentence and whose it is, the line that shows it, what to try, and who fell with it."""
    print("{} ({})".format(cause.get("text"), cause.get("owner_text") or cause.get("owner")))
    evidence = cause.get("evidence")
    if evidence:
        shows = "line" if evidence.get("shows_it") else "last line,"
        print("  {} {} of {}: {}".format(shows, evidence["seq"], evidence["worker"], plain(evidence["text"])))
    for step in cause.get("steps") or []:
        print("  - {}".format(step))
    others = [other["worker"] for other in cause.get("others") or []]
    if others:
        more = " and {} more".format(cause["more_others"]) if cause.get("more_others") else ""
        print("  ended after it: {}{}".format(", ".join(others), more))


def logs(chosen: argparse.Namespace) -> int:
    job = Client().job(chosen.job)
    several = len(job.data.get("workers") or []) > 1 and not chosen.worker
    lines = job.log_lines(
        follow=chosen.follow,
        worker=chosen.worker,
        attempt=chosen.attempt,
        grep=chosen.grep,
        ignore_case=chosen.ignore_case,
        literal=chosen.fixed_strings,
        level=chosen.level,
        since=chosen.since,
        until=chosen.until,
    )
    try:
        for line in _by_attempt(lines):
            _print_line(line, chosen.json, several)
    except KeyboardInterrupt:
        return detach(job)
    return 0


def _by_attempt(lines: Iterable[Dict[str, Any]]) -> Iterator[Dict[str, Any]]:
    """The same lines; where another attempt begins, a word on standard error says so."""
    attempt = 1
    for line in lines:
        if line.get("attempt", attempt) != attempt:
            attempt = line["attempt"]
            print("trainhall: attempt {}".format(attempt), file=sys.stderr, flush=True)
        yield line


def follow(job: Job, *, as_json: bool) -> int:
    """Show the log until the job has ended; its exit code, or 1 where a failed job's is not known."""
    said = job.status
    try:
        while not job.is_final and job.status != "running":
            time.sleep(0.5)
            if job.refresh().status != said:
                said = job.status
                _say(job)
        several = len(job.data.get("workers") or []) > 1
        for line in _by_attempt(job.log_lines(follow=True)):
            _print_line(line, as_json, several)
    except KeyboardInterrupt:
        return detach(job)
    _say(job)
    if job.status == "succeeded":
        return 0
    code = job.exit_code
    return code if code and 0 < code < 256 else 1


def detach(job: Job) -> int:
    text = "\nDetached; job {0} goes on. Watch it again: trainhall logs -f {0}. Stop it: trainhall stop {0}."
    print(text.format(job.id), file=sys.stderr)
    return INTERRUPTED


def _say(job: Job) -> None:
    print("trainhall: {} is {}{}".format(job.id, job.status, ": " + job.reason if job.reason else ""), file=sys.stderr)


def _print_line(line: Dict[str, Any], as_json: bool, several: bool) -> None:
    if as_json:
        import json

        print(json.dumps(line, ensure_ascii=False), flush=True)
    else:
        text = line_as_seen(line["text"]) if sys.stdout.isatty() else line["text"]  # a file gets what was written
        print("{}{}".format("[{}] ".format(line["worker"]) if several else "", text), flush=True)


def _row(job: Job) -> "tuple[Any, ...]":
    data = job.data
    gpus = (data.get("resources") or {}).get("total_gpus")
    return (
        job.id,
        data.get("name"),
        job.status,
        data.get("namespace"),
        data.get("user"),
        gpus,
        _done(data),
        age(data.get("created_at")),
        _why(job),
    )


def _why(job: Job) -> str:
    """Its place in the order in which the planner looks, where it waits; smaller or shorter jobs may start before it."""
    place, of = job.data.get("queue_position"), job.data.get("queue_length")
    where = "#{} of {}".format(place, of) if place else ""
    return ": ".join(part for part in (where, job.reason) if part)


def _done(data: Dict[str, Any]) -> str:
    progress = data.get("progress") or {}
    step, total = progress.get("step"), progress.get("total")
    if step is None:
        return ""
    return "{:.0f} %".format(100 * step / total) if total else "step {}".format(step)
