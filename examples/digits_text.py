"""The digits training, telling its numbers as people print them: `step=3 train/loss=0.5`. Nothing of Trainhall is imported."""

from __future__ import annotations

import sys

from digits_numpy import Network, Report, read_options, train


class Text(Report):
    def values(self, values: dict[str, float], *, step: int, epoch: int | None = None) -> None:
        where = f"step={step}" if epoch is None else f"epoch={epoch} step={step}"
        print(where, *(f"{key}={value!r}" for key, value in values.items()), flush=True)

    def weights(self, network: Network, *, step: int) -> None:
        """Not told in this way."""

    def progress(self, step: int, total: int, epoch: int) -> None:
        print(f"epoch {epoch} step {step}/{total}", flush=True)

    def end(self, accuracy: float) -> None:
        """Not told in this way."""


if __name__ == "__main__":
    sys.exit(train(read_options(), Text()))
