"""The frames of an exec over a websocket, as a kubelet sends and reads them."""

from __future__ import annotations

import json

import pytest

from jobs.cluster.kubernetes import channels
from jobs.cluster.kubernetes.channels import Ended

STATUS = {"metadata": {}, "status": "Failure", "message": "command terminated with non-zero exit code"}


def test_the_first_byte_names_the_stream() -> None:
    assert channels.framed(channels.STDIN, b"ls\n") == b"\x00ls\n"
    assert channels.framed(channels.STDIN, b"") == b"\x00"
    first, rest = channels.resized(97, 31)[:1], channels.resized(97, 31)[1:]
    assert first == b"\x04"
    assert json.loads(rest) == {"Width": 97, "Height": 31}


@pytest.mark.parametrize(
    ("frame", "output"),
    [
        (b"\x01out", b"out"),
        (b"\x02err", b"err"),
        (b"\x01", b""),  # each stream begins with an empty frame
        (b"\x01\x03x", b"\x03x"),  # only the first byte counts
        (b'\x03{"status":"Success"}', b""),
        (b"\xff\x01", b""),  # v5: a stream was closed
        (b"\x09what", b""),
        (b"", b""),
    ],
)
def test_what_a_program_wrote(frame: bytes, output: bytes) -> None:
    assert channels.output_of(frame) == output


@pytest.mark.parametrize(
    ("frame", "ended"),
    [
        (b'\x03{"metadata":{},"status":"Success"}', Ended(exit_code=0)),
        (
            b"\x03"
            + json.dumps(
                STATUS | {"reason": "NonZeroExit", "details": {"causes": [{"reason": "ExitCode", "message": "130"}]}}
            ).encode(),
            Ended(exit_code=130),
        ),
        (b"\x03" + json.dumps(STATUS | {"details": None}).encode(), Ended(message=STATUS["message"])),
        (b"\x03container not found", Ended(message="container not found")),
        (b"\x03[]", Ended(message="[]")),
        (b"\x01x", None),
        (b"\xff\x03", None),
    ],
)
def test_how_it_ended(frame: bytes, ended: Ended | None) -> None:
    assert channels.ending_of(frame) == ended


def test_an_image_without_a_shell() -> None:
    runc = 'exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown'
    assert Ended(message=f"OCI runtime exec failed: {runc}").has_no_shell
    assert not Ended(message="container not found").has_no_shell
