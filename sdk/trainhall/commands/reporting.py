"""log: points from a shell script, with the token of the job it runs in."""

from __future__ import annotations

import argparse
from typing import Any, Dict

from trainhall.errors import TrainhallError
from trainhall.place import find_place


def add_commands(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser(
        "log",
        parents=[common],
        help="inside a job: report numbers",
        description="trainhall log loss=0.5 val/accuracy=0.9 step=12 [epoch=1] [total=100]; total makes it progress too. "
        "It never fails for want of the portal, so that a script under `set -e` goes on.",
    )
    verb.add_argument("pairs", nargs="+", metavar="key=value")
    verb.set_defaults(run=log)


def log(chosen: argparse.Namespace) -> None:
    import trainhall

    numbers: Dict[str, float] = {}
    for pair in chosen.pairs:
        key, equals, text = pair.rpartition("=")
        try:
            numbers[key] = float(text)
        except ValueError:
            equals = ""
        if not (key and equals):
            raise TrainhallError("usage", "{!r} is not key=number.".format(pair))
    step, epoch, total = (numbers.pop(name, None) for name in ("step", "epoch", "total"))
    if step is None or step < 0 or step != int(step):
        raise TrainhallError("usage", "step=N is needed, a whole number from 0: each call is a process of its own.")
    trainhall.log(numbers, step=int(step), epoch=epoch)
    if total is not None and find_place() is not None:
        trainhall.progress(int(step), total, epoch)
    trainhall.finish(3.0)
    if chosen.json:
        from trainhall.tables import show_json

        show_json({**numbers, "step": int(step)})
