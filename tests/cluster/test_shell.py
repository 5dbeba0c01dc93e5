"""A shell in a real container: RBAC decides, the audit log says who it was, and nothing of it stays behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jobs.cluster.port import Manifest, ObjectRef, Terminal
from jobs.cluster.tenancy import Tenancy
from jobs.exceptions import ClusterForbids, ObjectGone
from tests.cluster.connected import ALICE, Hall, hall, person, pod

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("containers")]
__all__ = ["hall"]
PATIENCE = 30.0


@pytest.fixture(scope="module")
def vision(hall: Hall) -> Tenancy:
    found = hall.namespace()
    begin(hall, found.name, "runs")
    return found


def begin(hall: Hall, namespace: str, name: str, *, container: Manifest | None = None, **changes: Any) -> None:
    body = pod(name, container={"command": ["sleep", "600"]} | (container or {}), **changes)
    said = hall.as_user("alice", "-n", namespace, "create", "-f", "-", body=body)
    assert said.ok, said.text
    said = hall.kubectl("-n", namespace, "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    assert said.ok, said.text


def shell_of(hall: Hall, namespace: str, who: str, name: str = "runs") -> Awaitable[Terminal]:
    return hall.cluster.shell(ObjectRef(namespace, name), "worker-0", pod=name, person=person(who))


async def until(terminal: Terminal, words: str) -> str:
    """What came, up to these words."""
    heard = b""
    async with asyncio.timeout(PATIENCE):
        while words.encode() not in heard:
            more = await terminal.read()
            assert more, (heard, terminal.ended)
            heard += more
    return heard.decode(errors="replace")


async def rest_of(terminal: Terminal) -> bytes:
    heard = b""
    async with asyncio.timeout(PATIENCE):
        while more := await terminal.read():
            heard += more
    return heard


def processes(hall: Hall, namespace: str, of: str) -> list[str]:
    said = hall.as_user("alice", "-n", namespace, "exec", "runs", "--", "ps", "-o", "args")
    assert said.ok, said.text
    return [line for line in said.text.splitlines() if of in line]


def eventually(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.3)
    return True


async def test_alice_types_and_the_container_answers_as_her(hall: Hall, vision: Tenancy) -> None:
    terminal = await shell_of(hall, vision.name, "alice")
    await terminal.resize(97, 31)
    await terminal.write(b"id; stty size; echo done''\n")
    heard = await until(terminal, "done\r\n")
    assert f"uid={ALICE}" in heard
    assert "31 97" in heard
    await terminal.resize(120, 40)
    await terminal.write(b"stty size; exit\n")
    assert b"40 120" in await rest_of(terminal)
    assert terminal.ended == ""
    await terminal.close()

    asked = [entry for entry in hall.audited(vision.name) if entry["objectRef"].get("subresource") == "exec"]
    mine = [entry for entry in asked if (entry.get("impersonatedUser") or {}).get("username") == "ldap:alice"]
    assert mine
    assert mine[0]["user"]["username"] == "system:serviceaccount:trainhall-system:trainhall"
    assert mine[0]["impersonatedUser"]["extra"]["trainhall.io/via"] == ["portal"]


@pytest.mark.parametrize("who", ["dave", "vera"])
async def test_a_stranger_and_a_viewer_are_refused_by_kubernetes(hall: Hall, vision: Tenancy, who: str) -> None:
    with pytest.raises(ClusterForbids, match=f"ldap:{who}"):
        await shell_of(hall, vision.name, who)
    (refused,) = [
        entry
        for entry in hall.audited(vision.name)
        if entry["objectRef"].get("subresource") == "exec"
        and (entry.get("impersonatedUser") or {}).get("username") == f"ldap:{who}"
        and "upgrade" not in entry["requestURI"]
        and entry["stage"] == "ResponseComplete"
    ][:1]
    assert refused["responseStatus"]["code"] == 403


async def test_a_pod_that_is_not_there(hall: Hall, vision: Tenancy) -> None:
    with pytest.raises(ObjectGone):
        await shell_of(hall, vision.name, "alice", "never-was")


async def test_an_image_without_a_shell_says_so(hall: Hall, vision: Tenancy) -> None:
    python = {
        "image": "localhost/python:1",
        "command": ["/usr/bin/python3", "-c", "import time; time.sleep(600)"],
        "volumeMounts": [{"name": "nothing", "mountPath": "/bin"}],
    }
    begin(hall, vision.name, "bare", container=python, volumes=[{"name": "nothing", "emptyDir": {}}])
    terminal = await shell_of(hall, vision.name, "alice", "bare")
    await rest_of(terminal)
    assert "has no shell" in terminal.ended
    await terminal.close()


async def test_who_leaves_leaves_nothing_running(hall: Hall, vision: Tenancy) -> None:
    terminal = await shell_of(hall, vision.name, "alice")
    await terminal.write(b"sleep 4711 & sleep 4712\n")
    assert await asyncio.to_thread(eventually, lambda: len(processes(hall, vision.name, "sleep 471")) >= 2)
    await terminal.close()
    assert not processes(hall, vision.name, "sleep 471")


async def test_a_flood_waits_in_the_container(hall: Hall, vision: Tenancy) -> None:
    """Nobody reads for some seconds: what is held here stays small, and Ctrl-C still ends it."""
    terminal = await shell_of(hall, vision.name, "alice")
    await terminal.write(b"yes flood\n")
    await until(terminal, "flood\r\nflood")
    await asyncio.sleep(3)
    await terminal.write(b"\x03")
    await terminal.write(b"echo after''wards; exit\n")
    rest = await rest_of(terminal)
    assert b"afterwards" in rest
    assert len(rest) < 16 * 2**20  # buffers on the way, not three seconds of `yes`
    await terminal.close()


async def test_the_pod_ends_and_so_does_its_shell(hall: Hall, vision: Tenancy) -> None:
    begin(hall, vision.name, "short")
    terminal = await shell_of(hall, vision.name, "alice", "short")
    await terminal.write(b"echo he''re\n")
    await until(terminal, "here")
    assert hall.as_user("alice", "-n", vision.name, "delete", "pod", "short", "--grace-period=1", "--wait=false").ok
    await rest_of(terminal)
    await terminal.close()
