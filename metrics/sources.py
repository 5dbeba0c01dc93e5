"""The doors that points come by, and which of two is believed when both report the same name (pure)."""

from __future__ import annotations

# the first is believed most: what a program says on purpose, over what is read from beside it
SOURCES = ("sdk", "mlflow", "trainer", "tensorboard", "file", "stdout")
SDK, TENSORBOARD, STDOUT = "sdk", "tensorboard", "stdout"


def is_above(one: str, other: str) -> bool:
    """Whether `one` is believed more than `other`; a door that is not known here is believed least."""
    return _place(one) < _place(other)


def lesser_than(source: str) -> tuple[str, ...]:
    return SOURCES[_place(source) + 1 :]


def suffixed(key: str, source: str, *, most: int) -> str:
    """The name of a second series beside one of a source that is believed more."""
    tail = f" ({source})"
    return key[: most - len(tail)] + tail


def _place(source: str) -> int:
    return SOURCES.index(source) if source in SOURCES else len(SOURCES)
