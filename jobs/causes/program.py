"""What went wrong in one worker, read from its last lines (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from jobs.causes.hints import package_of, size
from jobs.causes.scene import Finding, Line, Scene, WorkerEnd
from jobs.causes.signs import BROKEN_GPU, SIGNS, Sign
from jobs.causes.tracebacks import Raised, exceptions_in, last_of_each_rank

LAST = 120  # lines before the end in which an exception may stand and still be what ended the program
LAST_WORDS = 5  # lines at the end that belong to the end itself
MESSAGE = 300  # characters of a program's own message in a sentence
# kinds that no exception of the program brings about
HARDWARE = frozenset({"gpu_hardware", "nccl_timeout"})
_ENVIRONMENT = ("os.py", "<frozen os>")


def of_worker(worker: WorkerEnd, scene: Scene) -> Finding | None:
    """The most telling thing in its lines: a strong sign, the exception that ended it, any other sign.

    An exception that names a known cause says more than a strong sign, but not where a broken GPU or link was told before it:
    then it is what a program says whose GPU or peer is gone.
    """
    lines = worker.lines or tuple(Line(0, text) for text in worker.message.splitlines())
    raised = [] if _was_killed(worker) else _that_ended(lines)
    exception = _first_cause([(one, _of_exception(one)) for one in raised])
    strong = _by_line(lines, [sign for sign in SIGNS if sign.strong])
    if exception and strong:
        return _first_of_two(lines, *exception, strong)
    if strong:
        return strong
    if exception:
        return exception[1]
    return _by_line(lines, [sign for sign in SIGNS if sign.reach and not sign.strong])


def _first_of_two(lines: Sequence[Line], raised: Raised, by_exception: Finding, strong: Finding) -> Finding:
    at = next(index for index, line in enumerate(lines) if line is strong.line)
    if strong.kind in HARDWARE and at < raised.index:
        return strong
    if strong.kind == "nccl_timeout" and not by_exception.follow_up:
        # the others waited for the one that raised; long after an exception it is one that was caught
        end = raised.index + len(raised.more)
        if raised.index < at <= end + LAST_WORDS:
            return by_exception
    is_known = by_exception.kind not in ("python_exception", "assertion") and not by_exception.follow_up
    return by_exception if is_known else strong


def _was_killed(worker: WorkerEnd) -> bool:
    """By a signal that no exception leads to: an exception printed before was caught."""
    return worker.signal is not None and worker.signal != 6  # SIGABRT is how a library gives up


def _that_ended(lines: Sequence[Line]) -> list[Raised]:
    near = [one for one in exceptions_in(lines) if one.index >= len(lines) - LAST]
    for one in near:
        one.more = list(takewhile(lambda line: not _tells_of_hardware(line), one.more))  # the kernel's or NCCL's own
    return last_of_each_rank(near)


def _tells_of_hardware(line: Line) -> bool:
    return any(sign.pattern.search(line.words) for sign in SIGNS if sign.kind in ("xid", *HARDWARE))


def _first_cause(found: Sequence[tuple[Raised, Finding]]) -> tuple[Raised, Finding] | None:
    return next((one for one in found if not one[1].follow_up), found[0] if found else None)


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
