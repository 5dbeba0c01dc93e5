"""Report from a training, and talk to the portal: `trainhall.log({"loss": loss}, step=step)`."""

from trainhall.place import notice, rank, world_size
from trainhall.reporting import finish, init, log, log_weights, progress, summary, watch

__version__ = "0.1.0"

__all__ = [
    "Client",
    "TrainhallError",
    "finish",
    "init",
    "log",
    "log_weights",
    "notice",
    "progress",
    "rank",
    "summary",
    "watch",
    "world_size",
]


def __getattr__(name):
    """Client and TrainhallError on demand: a training that only logs does not pay for importing them."""
    if name == "Client":
        from trainhall.client import Client

        return Client
    if name == "TrainhallError":
        from trainhall.errors import TrainhallError

        return TrainhallError
    raise AttributeError("module 'trainhall' has no attribute {!r}".format(name))
