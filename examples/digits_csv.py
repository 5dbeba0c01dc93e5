"""The digits training, telling its numbers in a CSV file, as Lightning's CSVLogger does. Nothing of Trainhall is imported.

A column of steps, one row for each report, cells empty where there is nothing to say.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from digits_numpy import Network, Report, read_options, train

COLUMNS = ["epoch", "step", "train/loss", "lr", "val/loss", "val/accuracy"]


class Table(Report):
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # line by line, so that each row is in the file once it is written
        self.file = open(path, "w", newline="", buffering=1)  # noqa: SIM115 - until the training ends
        self.rows = csv.DictWriter(self.file, COLUMNS)
        self.rows.writeheader()

    def values(self, values: dict[str, float], *, step: int, epoch: int | None = None) -> None:
        self.rows.writerow({"step": step, "epoch": epoch} | values)

    def weights(self, network: Network, *, step: int) -> None:
        """Not told in this way."""

    def progress(self, step: int, total: int, epoch: int) -> None:
        """Not told in this way."""

    def end(self, accuracy: float) -> None:
        self.file.close()


if __name__ == "__main__":
    sys.exit(train(read_options(), Table(Path("csv_logs", "version_0", "metrics.csv"))))
