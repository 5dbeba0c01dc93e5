"""The socket of a shell, on a local cluster: who may keep it, when it closes, and what is written down."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from accounts.models import AuditEvent, Membership, Namespace, User
from jobs.cluster.port import ObjectRef
from jobs.models import Worker
from jobs.shell import seats, socket
from jobs.shell.socket import shells
from portal.asgi import application
from tests.factories import make_attempt, make_job
from tests.jobs.yard import Yard

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 20.0


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.close()


@pytest.fixture
def running(yard: Yard, vision: Namespace, alice: User, settings: Any) -> Worker:
    """Alice's job as the watcher has it, and its pod."""
    ref = yard.start("sleep 600")
    end = time.monotonic() + PATIENCE
    while not (pods := [pod for pod in yard.raw(ref)[1] if pod["status"]["phase"] == "Running"]):
        assert time.monotonic() < end
        time.sleep(0.05)
    settings.HAS_LOCAL_CLUSTER = True
    settings.TRAINHALL_DATA_DIR = yard.root.parent
    (yard.root.parent / "cluster").symlink_to(yard.root)  # where the portal looks for it
    attempt = make_attempt(make_job(alice, vision))
    attempt.object_name, attempt.uid, attempt.kubernetes_namespace = ref.name, ref.uid, ref.namespace
    attempt.save()
    attempt.workers.update(phase="Running", pod_name=pods[0]["metadata"]["name"])
    return Worker.objects.select_related("attempt").get(attempt=attempt)


class Browser:
    """The browser's end of one shell."""

    def __init__(self, person: User, job_id: str, worker: str = "worker-0") -> None:
        client = Client()
        client.force_login(person)
        name = settings.SESSION_COOKIE_NAME
        self.client = client
        self._end = ApplicationCommunicator(
            application,
            {
                "type": "websocket",
                "path": f"/ws/jobs/{job_id}/shell/",
                "query_string": f"worker={worker}".encode(),
                "headers": [
                    (b"cookie", f"{name}={client.cookies[name].value}".encode()),
                    (b"origin", settings.TRAINHALL_ORIGINS[0].encode()),
                ],
                "subprotocols": [],
                "client": ("192.0.2.7", 40000),
            },
        )
        self.written = b""
        self.words: list[dict[str, Any]] = []
        self.acknowledges = True

    async def open(self) -> None:
        await self._end.send_input({"type": "websocket.connect"})
        assert (await self._end.receive_output(timeout=PATIENCE))["type"] == "websocket.accept"

    async def type(self, text: str) -> None:
        await self._end.send_input({"type": "websocket.receive", "bytes": text.encode()})

    async def say(self, **words: Any) -> None:
        await self.send(json.dumps(words))

    async def send(self, text: str) -> None:
        await self._end.send_input({"type": "websocket.receive", "text": text})

    async def hear(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._end.receive_output(timeout=PATIENCE)
        if output := message.get("bytes"):
            self.written += output
            if self.acknowledges:
                await self.say(drawn=len(output))
        elif message["type"] == "websocket.send":
            self.words.append(json.loads(message["text"]))
        return message

    async def until(self, text: str) -> None:
        while text.encode() not in self.written:
            await self.hear()

    async def word(self, name: str) -> Any:
        while True:
            for words in self.words:
                if name in words:
                    return words[name]
            await self.hear()

    async def is_quiet(self, seconds: float) -> bool:
        return bool(await self._end.receive_nothing(timeout=seconds))

    async def leave(self) -> None:
        await self._end.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._end.wait(timeout=PATIENCE)


@asynccontextmanager
async def shell_of(person: User, worker: Worker) -> AsyncIterator[Browser]:
    browser = await sync_to_async(Browser)(person, worker.attempt.job_id)
    await browser.open()
    assert await browser.word("opened") == "worker-0"
    yield browser
    await browser.leave()


def audited() -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(action__startswith="shell.").order_by("pk"))


async def test_what_is_typed_is_run_and_never_written_down(running: Worker, alice: User) -> None:
    async with shell_of(alice, running) as browser:
        await browser.say(size=[91, 17])
        await browser.type("stty size; echo job=$TRAINHALL_JOB_ID ca''nary\n")
        await browser.until("canary")
        assert b"17 91" in browser.written
        assert await browser.word("taken") == len("stty size; echo job=$TRAINHALL_JOB_ID ca''nary\n")
        await browser.type("exit\n")
        assert await browser.word("ended") == "exited"
    opened, closed = await sync_to_async(audited)()
    assert (opened.action, closed.action) == ("shell.open", "shell.close")
    assert opened.actor == "alice" and opened.target == running.attempt.job_id and opened.namespace == "vision"
    assert opened.address == "192.0.2.7"
    assert closed.after["worker"] == "worker-0" and closed.after["why"] == "exited"
    assert closed.after["seconds"] >= 0
    assert "nary" not in json.dumps([opened.after, closed.after])


async def test_who_loses_the_role_loses_the_shell_at_once(running: Worker, alice: User) -> None:
    async with shell_of(alice, running) as browser:
        await Membership.objects.filter(user=alice, namespace__slug="vision").adelete()
        shells.ask_again()
        assert await browser.word("ended") == "no_right"


async def test_who_signs_out_loses_the_shell(running: Worker, alice: User) -> None:
    async with shell_of(alice, running) as browser:
        await sync_to_async(browser.client.logout)()
        shells.ask_again()
        assert await browser.word("ended") == "session_over"


async def test_without_any_hint_it_is_asked_again(
    running: Worker, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "RIGHTS", 0.2)
    async with shell_of(alice, running) as browser:
        await Worker.objects.filter(pk=running.pk).aupdate(phase="Succeeded")
        assert await browser.word("ended") == "worker_ended"


async def test_the_pod_ends_and_the_shell_with_it(running: Worker, alice: User, yard: Yard) -> None:
    async with shell_of(alice, running) as browser:
        attempt = running.attempt
        ref = ObjectRef(attempt.kubernetes_namespace, attempt.object_name, attempt.uid)
        await asyncio.to_thread(yard.cluster.kill, ref, person=None)
        assert await browser.word("ended") == "broke_off"


async def test_it_closes_when_nobody_uses_it_and_warns_before(running: Worker, alice: User, settings: Any) -> None:
    settings.TRAINHALL_SHELL_IDLE = 1 / 30  # two seconds
    async with shell_of(alice, running) as browser:
        assert await browser.word("closing") <= 2
        assert await browser.word("ended") == "idle"


async def test_a_flood_waits_for_the_browser(running: Worker, alice: User) -> None:
    """Nothing is drawn, so nothing more is sent than the window; keys and Ctrl-C still pass."""
    async with shell_of(alice, running) as browser:
        browser.acknowledges = False
        await browser.type("yes flood\n")
        while not await browser.is_quiet(1.5):
            await browser.hear()
        held = len(browser.written)
        assert socket.WINDOW < held <= socket.WINDOW + 64 * 2**10
        await browser.type("\x03")
        browser.acknowledges = True
        await browser.say(drawn=held)
        await browser.type("echo after''wards; exit\n")
        await browser.until("afterwards")
        assert await browser.word("ended") == "exited"


async def test_what_a_program_does_not_read_is_not_taken_for_ever(running: Worker, alice: User) -> None:
    async with shell_of(alice, running) as browser:
        await browser.type("stty raw -echo; sleep 600\n")
        await asyncio.sleep(0.5)
        for _chunk in range(20):
            await browser.type("x" * 16 * 2**10)
        assert await browser.word("ended") == "too_much"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"size": [0, 5]}', '{"size": ["a", 1]}', '{"drawn": -1}', '{"drawn": 9999999}']
)
async def test_a_frame_that_is_none(running: Worker, alice: User, text: str) -> None:
    async with shell_of(alice, running) as browser:
        await browser.send(text)
        assert await browser.word("ended") == "bad_frame"


async def test_a_worker_that_does_not_run_or_is_none(running: Worker, alice: User) -> None:
    for worker in ("worker-7", "", "../..", "launcher-0", "worker-0%00"):
        browser = await sync_to_async(Browser)(alice, running.attempt.job_id, worker)
        await browser.open()
        assert await browser.word("ended") == "not_running"
        await browser.leave()
    assert await sync_to_async(audited)() == []


async def test_four_of_one_person_and_no_fifth(running: Worker, alice: User) -> None:
    async with shell_of(alice, running), shell_of(alice, running), shell_of(alice, running), shell_of(alice, running):
        fifth = await sync_to_async(Browser)(alice, running.attempt.job_id)
        await fifth.open()
        assert await fifth.word("ended") == "too_many"
        await fifth.leave()
    async with shell_of(alice, running):
        pass
    refused = [row for row in await sync_to_async(audited)() if row.action == "shell.refuse"]
    assert [row.after["why"] for row in refused] == ["too_many"]


def test_shells_of_all_processes_are_counted(alice: User) -> None:
    others = [f"of another process {number}" for number in range(seats.MOST)]
    for one in others:
        assert seats._count(alice.pk, one) <= seats.MOST
    assert not seats.take(alice.pk, "mine")
    for one in others:
        seats._valkey().zrem(seats._key(alice.pk), one)
    assert seats.take(alice.pk, "mine")
    seats.leave(alice.pk, "mine")


async def test_nothing_started_from_a_shell_outlives_it(running: Worker, alice: User, tmp_path: Path) -> None:
    async with shell_of(alice, running) as browser:
        await browser.type(f"setsid nohup sh -c 'echo $$ >{tmp_path}/pid; exec sleep 600' >/dev/null 2>&1 &\n")
        async with asyncio.timeout(PATIENCE):
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                await asyncio.sleep(0.05)
        pid = int((tmp_path / "pid").read_text())
        assert Path(f"/proc/{pid}").exists()
    async with asyncio.timeout(PATIENCE):
        while Path(f"/proc/{pid}").exists() and "sleep" in Path(f"/proc/{pid}/comm").read_text():
            await asyncio.sleep(0.05)
