"""The frames of an exec over a websocket (v5.channel.k8s.io): the first byte names a stream. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
# what a shell says of a command that it could not find, and runc of one that is not in the image
NO_SUCH_PROGRAM = ("no such file or directory", "executable file not found")


@dataclass(frozen=True, slots=True)
class Ended:
    """How the program ended: its exit code, or why there was none."""

    exit_code: int | None = None
    message: str = ""

    @property
    def has_no_shell(self) -> bool:
        return any(words in self.message for words in NO_SUCH_PROGRAM)


def framed(channel: int, data: bytes) -> bytes:
    return bytes((channel,)) + data


def resized(columns: int, rows: int) -> bytes:
    return framed(RESIZE, orjson.dumps({"Width": columns, "Height": rows}))


def output_of(frame: bytes) -> bytes:
    """What the program wrote; nothing of a frame that says something else, or nothing."""
    return frame[1:] if frame[:1] in (b"\x01", b"\x02") else b""


def ending_of(frame: bytes) -> Ended | None:
    """The Status object of the error channel; None of every other frame."""
    if frame[:1] != b"\x03":
        return None
    try:
        status = orjson.loads(frame[1:])
    except orjson.JSONDecodeError:
        return Ended(message=frame[1:].decode(errors="replace"))
    if not isinstance(status, dict):
        return Ended(message=str(status))
    if status.get("status") == "Success":
        return Ended(exit_code=0)
    causes = (status.get("details") or {}).get("causes") or []
    codes = [cause.get("message", "") for cause in causes if cause.get("reason") == "ExitCode"]
    if codes and str(codes[0]).isdecimal():
        return Ended(exit_code=int(codes[0]))
    return Ended(message=str(status.get("message", "")))
