"""What a training calls: log(), progress(), watch(), finish(). None of it raises into the training or waits for the portal."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from trainhall.batches import Record, number
from trainhall.place import Place, find_place
from trainhall.sender import Sender, import_all

AT_EXIT = 3.0  # seconds that the end of a program may be held up when the portal is slow or away
LOCAL_FILE = "trainhall.jsonl"
SHARE = 100  # a look at the weights may take one hundredth of the time, no more

_number_types = (float, int)


class LocalFile:
    """In place of the portal, outside a job: each call of log() is a line of JSON."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.say_once = _never

    def add(self, record: Record) -> None:
        when, step, pairs = record
        self._append({"step": step, "time": when, **{key: number(value) for key, value in pairs}})

    def add_distribution(self, distribution: Dict[str, Any]) -> None:
        self._append(distribution)

    def set_progress(self, progress: Dict[str, Any]) -> None:
        self._append({"progress": progress})

    def finish(self, _seconds: float) -> None:
        return  # each line is written at once

    def _append(self, document: Dict[str, Any]) -> None:
        import json

        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(document) + "\n")


class Reports:
    """The reports of this process; a forked child starts with its own."""

    def __init__(self) -> None:
        self.sink: Any = None
        self.opening = threading.RLock()  # for the first call only; re-entrant for a signal handler that logs
        self.is_set_up = False
        self.steps: Iterator[int] = itertools.count()  # next() on it cannot be interrupted: no lock is needed
        self.last_step = 0
        self.watched: List["Watched"] = []

    def open(self) -> Any:
        """The sink, found out at the first call; None outside a job."""
        with self.opening:
            if not self.is_set_up:
                place = find_place()
                if place is not None:
                    self.use(place)
                else:
                    self.is_set_up = True
                    print("trainhall: not inside a job, nothing is reported.", file=sys.stderr)
        return self.sink

    def use(self, place: Place) -> None:
        import_all()
        if self.sink is None:  # a signal handler may have logged in the middle of this
            self.sink = Sender(place)
            _finish_before_child_processes_end()
        self.is_set_up = True

    def add(self, pairs: List[Tuple[str, Any]], step: Any) -> None:
        sink = self.sink if self.is_set_up else self.open()
        if sink is None:
            return
        if step is None:
            step = next(self.steps)
        else:
            step = _whole(step)
            self.steps = itertools.count(step + 1)
        self.last_step = step
        if pairs:
            sink.add((time.time(), step, pairs))
        for watched in self.watched:
            watched.look(self, step)

    def complain(self, error: BaseException) -> None:
        sink = self.sink
        text = "a report was ignored: {}".format(str(error) or type(error).__name__)
        if isinstance(sink, Sender):
            sink.say_once(type(error).__name__, text)
        elif self.is_set_up and sink is not None:
            print("trainhall: " + text, file=sys.stderr)


class Watched:
    """A model whose weights are looked at every so many steps, unless that would take too large a share of the time."""

    def __init__(self, model: Any, every: int) -> None:
        self.model = model
        self.every = max(1, int(every))
        self.next_step = 0
        self.not_before = 0.0

    def look(self, reports: Reports, step: int) -> None:
        if step < self.next_step or time.monotonic() < self.not_before:
            return
        self.next_step = step - step % self.every + self.every
        began = time.monotonic()
        _add_weights(reports, _named_arrays(self.model), step, "weight")
        took = time.monotonic() - began
        self.not_before = began + took * SHARE


class Summary(Dict[str, Any]):
    """The numbers a run is remembered by: `trainhall.summary["top1"] = 0.81`."""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        log({"summary/" + str(name): value}, step=_reports.last_step)


def _harmless(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except Exception as error:  # the first rule: a report never ends a training
            _reports.complain(error)

    return guarded


@_harmless
def init(config: Any = None, *, file: Optional[str] = LOCAL_FILE) -> None:
    """Optional. Keeps the configuration beside the output; outside a job it lets log() write lines to `file`."""
    place = find_place()
    if place is None:
        _reports.is_set_up = True
        if file is None:
            print("trainhall: not inside a job, nothing is reported.", file=sys.stderr)
            return
        _reports.sink = LocalFile(os.path.abspath(file))
        print("trainhall: not inside a job, reports go to ./{}.".format(file), file=sys.stderr)
        if config is not None:
            _reports.sink._append({"config": _as_dict(config)})
        return
    _reports.open()
    output = os.environ.get("TRAINHALL_OUTPUT_DIR")
    if config is not None and output and place.rank == 0:
        import json

        with open(os.path.join(output, "trainhall-config.json"), "w", encoding="utf-8") as target:
            json.dump(_as_dict(config), target, indent=2, default=str)


@_harmless
def log(metrics: Optional[Dict[str, Any]] = None, *, step: Any = None, epoch: Any = None, **more: Any) -> None:
    """Report numbers at a step: log({"train/loss": loss}, step=step), or log(step=step, loss=loss)."""
    pairs: List[Tuple[str, Any]] = []
    bad = ""
    for given in (metrics, more):
        if given:
            for key, value in given.items():
                if type(value) in _number_types:
                    pairs.append((key if type(key) is str else str(key), value))
                else:
                    bad = _add_slowly(pairs, str(key), value) or bad
    if epoch is not None:
        bad = _add_slowly(pairs, "epoch", epoch) or bad
    _reports.add(pairs, step)
    if bad:
        raise TypeError(bad)


@_harmless
def progress(step: Any, total: Any = None, epoch: Any = None) -> None:
    """Report how far the training is; the portal works out when it will end."""
    sink = _reports.open()
    if sink is not None:
        found = {"step": _whole(step)}
        if total is not None:
            found["total"] = _whole(total)
        if epoch is not None:
            found["epoch"] = float(epoch)
        sink.set_progress(found)


@_harmless
def watch(model: Any = None, every: int = 500) -> None:
    """Report the weights of a model (a torch module, a dict of arrays, or a function that returns one) every so many steps.

    The call of log() that comes to such a step takes the time of the look; it is skipped where that would exceed one per cent.
    """
    _reports.watched = [] if model is None else [*_reports.watched, Watched(model, every)]


@_harmless
def log_weights(arrays: Any, *, step: Any = None, of: str = "weight") -> None:
    """Report how the values of each layer are distributed: {"layer1.weight": array}, or a torch module."""
    if _reports.open() is not None:
        _add_weights(_reports, _named_arrays(arrays), _reports.last_step if step is None else _whole(step), of)


def finish(seconds: float = 5.0) -> None:
    """Send what waits, for so long at most. Optional: the end of the program does it too."""
    sink = _reports.sink
    if sink is None:
        return
    try:
        sink.finish(seconds)
    except Exception as error:
        _reports.complain(error)
    if isinstance(sink, Sender) and sink.is_left:
        _reports.sink = Sender(sink.place)


def _add_weights(reports: Reports, arrays: Dict[str, Any], step: int, of: str) -> None:
    from trainhall.tensors import picture

    pairs: List[Tuple[str, Any]] = []
    for name, array in arrays.items():
        seen = picture(array)
        if seen is None:
            continue
        reports.sink.add_distribution(
            {
                "key": name,
                "of": of,
                "step": step,
                "time": time.time(),
                "edges": seen.edges,
                "counts": seen.counts,
                "nan": seen.nan,
                "inf": seen.inf,
            }
        )
        pairs += [("{}s/{}/{}".format(of, name, what), getattr(seen, what)) for what in ("mean", "std", "norm")]
    if pairs:
        reports.sink.add((time.time(), step, pairs))


def _named_arrays(model: Any) -> Dict[str, Any]:
    if hasattr(model, "named_parameters"):
        return dict(model.named_parameters())
    found = model() if callable(model) else model
    return {str(name): array for name, array in found.items()}


def _add_slowly(pairs: List[Tuple[str, Any]], key: str, value: Any) -> str:
    """Anything but a plain number; returns what is wrong with it, if anything."""
    if isinstance(value, dict):
        return "".join([_add_slowly(pairs, "{}/{}".format(key, name), inner) for name, inner in value.items()][:1])
    from trainhall.tensors import to_number

    try:
        pairs.append((key, to_number(value)))
    except OverflowError:
        pairs.append((key, value))  # an integer beyond floats; packing makes it infinite
    except (TypeError, ValueError, RuntimeError) as error:
        return "{!r} is not a number: {}".format(key, error)
    return ""


def _whole(step: Any) -> int:
    return step if type(step) is int else int(step)


def _as_dict(config: Any) -> Any:
    """A dict of it: argparse's Namespace and dataclasses keep their fields in __dict__."""
    return config if isinstance(config, (dict, list, str)) else dict(getattr(config, "__dict__", {"value": config}))


def _never(_kind: str, _text: str) -> None:
    return


def _at_exit() -> None:
    finish(AT_EXIT)


def _finish_before_child_processes_end() -> None:
    """multiprocessing ends its children without running atexit; it has a list of its own."""
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:  # type: ignore[attr-defined]
        util.Finalize(None, finish, args=(AT_EXIT,), exitpriority=100)  # type: ignore[attr-defined]


def _start_anew() -> None:
    """In a forked child: the parent's thread is not here, and what waits is the parent's to send."""
    parent = _reports.sink
    _reports.watched = []
    _reports.opening = threading.RLock()
    if isinstance(parent, Sender):
        _reports.sink = None
        _reports.is_set_up = False


_reports = Reports()
summary = Summary()
atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
