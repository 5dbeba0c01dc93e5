"""What went wrong in one worker, read from its last lines (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jobs.causes.hints import package_of, size
from jobs.causes.scene import Finding, Line, Scene, WorkerEnd
from jobs.causes.signs import BROKEN_GPU, SIGNS, Sign
from jobs.causes.tracebacks import Raised, exceptions_in, last_of_each_rank

LAST = 120  # lines before the end in which an exception may stand and still be what ended the program
LAST_WORDS = 5  # lines at the end that belong to the end itself
MESSAGE = 300  # characters of a program's own message in a sentence
_ENVIRONMENT = ("os.py", "<frozen os>")


def of_worker(worker: WorkerEnd, scene: Scene) -> Finding | None:
    """The most telling thing in its lines: a strong sign, the exception that ended it, any other sign."""
    lines = worker.lines or tuple(Line(0, text) for text in worker.message.splitlines())
    raised = [] if _was_killed(worker) else _that_ended(lines)
    by_exception = _first_cause([_of_exception(one) for one in raised])
    if by_exception and by_exception.kind not in ("python_exception", "assertion") and not by_exception.follow_up:
        return by_exception
    strong = _by_line(lines, [sign for sign in SIGNS if sign.strong])
    if strong:
        return strong
    if by_exception:
        return by_exception
    return _by_line(lines, [sign for sign in SIGNS if sign.reach and not sign.strong])


def _was_killed(worker: WorkerEnd) -> bool:
    """By a signal that no exception leads to: an exception printed before was caught."""
    return worker.signal is not None and worker.signal != 6  # SIGABRT is how a library gives up


def _that_ended(lines: Sequence[Line]) -> list[Raised]:
    near = [one for one in exceptions_in(lines) if one.index >= len(lines) - LAST]
    return last_of_each_rank(near)


def _first_cause(findings: Sequence[Finding]) -> Finding | None:
    return next((one for one in findings if not one.follow_up), findings[0] if findings else None)


def _of_exception(raised: Raised) -> Finding:
    values = {"type": raised.name, "message": raised.message[:MESSAGE], "place": raised.place, "rank": raised.rank}
    for sign in SIGNS:
        match = sign.pattern.search(raised.text)
        if not match:
            continue
        found = {name: value for name, value in match.groupdict().items() if value}
        if sign.kind == "variable_missing" and not any(frame[0].endswith(_ENVIRONMENT) for frame in raised.frames):
            continue  # a key of some dictionary
        return _finding(sign, values | found, raised.line_at(match.start()))
    return Finding("python_exception", values, raised.line)


def _by_line(lines: Sequence[Line], signs: Sequence[Sign]) -> Finding | None:
    for sign in signs:
        for back, line in enumerate(lines[-sign.reach :], start=-min(sign.reach, len(lines))):
            if match := sign.pattern.search(line.words):
                values = {name: value for name, value in match.groupdict().items() if value}
                return replace(_finding(sign, {"rank": line.rank} | values, line), went_on=back < -LAST_WORDS)
    return None


def _finding(sign: Sign, values: dict[str, str], line: Line) -> Finding:
    kind = sign.kind
    if kind == "xid":
        kind = "gpu_hardware" if int(values["xid"][:6]) in BROKEN_GPU else "gpu_fault"
    if milliseconds := values.pop("milliseconds", ""):
        values["waited"] = f"{round(int(milliseconds[:12]) / 1000)} s"
    if (asked := values.get("asked", "")).endswith("bytes"):
        values["asked"] = size(int(asked.removesuffix("bytes").replace(",", "").strip()))
    if module := values.get("module"):
        values["package"] = package_of(module)
    for name in ("message", "path"):
        if name in values:
            values[name] = values[name][:MESSAGE].strip()
    return Finding(kind, values, line, sign.follow_up)
