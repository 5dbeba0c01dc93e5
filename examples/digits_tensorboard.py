"""The digits training, telling its numbers in TensorBoard's event files, which Trainhall reads while they are written.

It needs torch or tensorboardX for the writer. Nothing of Trainhall is imported; the folder may also be ./runs.
"""

from __future__ import annotations

import os
import sys

from digits_numpy import Network, Report, read_options, train

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        sys.exit("This example needs a writer of event files: pip install tensorboardX")


class Events(Report):
    def __init__(self) -> None:
        # the writer's own default is to hand its events out every two minutes
        self.writer = SummaryWriter(os.environ.get("TRAINHALL_TB_DIR", "runs"), flush_secs=2)

    def values(self, values: dict[str, float], *, step: int, epoch: int | None = None) -> None:
        for key, value in (values if epoch is None else values | {"epoch": epoch}).items():
            self.writer.add_scalar(key, value, step)

    def weights(self, network: Network, *, step: int) -> None:
        for name, array in network.named().items():
            self.writer.add_histogram(name, array, step)

    def progress(self, step: int, total: int, epoch: int) -> None:
        """Not told in this way."""

    def end(self, accuracy: float) -> None:
        self.writer.close()


if __name__ == "__main__":
    sys.exit(train(read_options(), Events()))
