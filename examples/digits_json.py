"""The digits training, telling its numbers as lines of JSON on standard output. Nothing of Trainhall is imported.

Any program in any language can do that: one object a line, with its step.
"""

from __future__ import annotations

import json
import sys

from digits_numpy import Network, Report, read_options, train


class Lines(Report):
    def values(self, values: dict[str, float], *, step: int, epoch: int | None = None) -> None:
        where = {"step": step} if epoch is None else {"step": step, "epoch": epoch}
        print(json.dumps(where | values), flush=True)

    def weights(self, network: Network, *, step: int) -> None:
        """Not told in this way."""

    def progress(self, step: int, total: int, epoch: int) -> None:
        print(json.dumps({"step": step, "total_steps": total, "epoch": epoch}), flush=True)

    def end(self, accuracy: float) -> None:
        """Not told in this way."""


if __name__ == "__main__":
    sys.exit(train(read_options(), Lines()))
