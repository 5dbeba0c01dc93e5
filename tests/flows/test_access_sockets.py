"""Who may open a socket and follow what: the same table as for pages (F24, R89, R91)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from accounts import tokens
from accounts.models import Membership, User
from jobs.credentials import attempt_token
from metrics.live import hub
from portal.asgi import application, ingest
from tests.factories import make_attempt
from tests.flows.access_table import CAST, SOCKETS, TOPICS
from tests.flows.conftest import Stage
from tests.flows.routes import bare_routes, socket_routes, topic_kinds

pytestmark = pytest.mark.django_db(transaction=True)

OURS = settings.TRAINHALL_ORIGINS[0]
FOREIGN = {
    "missing": [],
    "null": [b"null"],
    "foreign": [b"https://evil.example"],
    "sub-domain": [OURS.replace("://", "://evil.").encode()],
    "other port": [f"{OURS.rpartition(':')[0]}:1".encode()],
    "other scheme": [OURS.replace("http:", "https:").encode()],
    "longer": [f"{OURS}.evil.example".encode()],
    "with a path": [f"{OURS}/".encode()],
    "twice": [OURS.encode(), b"https://evil.example"],
}
IDENTITY = [(name, b"admin") for name in (b"x-forwarded-user", b"remote-user", b"x-remote-user", b"kubeflow-userid")]


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """The hub belongs to one event loop, which here is that of one test."""
    try:
        yield
    finally:
        await hub.close()


def cookie_of(person: User | None) -> list[tuple[bytes, bytes]]:
    if person is None:
        return []
    client = Client()
    client.force_login(person)
    return [
        (b"cookie", f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode())
    ]


class Socket:
    """A browser's end of a websocket, straight to the application."""

    def __init__(self, path: str, headers: list[tuple[bytes, bytes]], origins: list[bytes] | None = None) -> None:
        sent = [OURS.encode()] if origins is None else origins
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": [*headers, *((b"origin", origin) for origin in sent)],
            "subprotocols": [],
        }
        self._end = ApplicationCommunicator(application, scope)
        self.refused: dict[str, Any] = {}  # the first answer

    async def opens(self) -> bool:
        await self._end.send_input({"type": "websocket.connect"})
        answer: dict[str, Any] = await self._end.receive_output(timeout=10)
        self.refused = answer
        return answer["type"] == "websocket.accept"

    async def leave(self) -> None:
        await self._end.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._end.wait(timeout=10)

    async def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._end.receive_output(timeout=10)
        return message

    async def frame_of(self, topic: str) -> dict[str, Any]:
        while True:
            frame: dict[str, Any] = json.loads((await self.receive())["text"])
            if frame["topic"] == topic:
                return frame

    async def follow(self, topic: str) -> dict[str, Any]:
        """The first answer to a subscription."""
        await self._end.send_input({"type": "websocket.receive", "text": json.dumps({"subscribe": {topic: None}})})
        return await self.frame_of(topic)


async def status_of(path: str, headers: list[tuple[bytes, bytes]]) -> int:
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    asked = ApplicationCommunicator(application, scope)
    await asked.send_input({"type": "http.request", "body": b"{}"})
    answer = await asked.receive_output(timeout=10)
    return int(answer["status"])


def test_every_socket_and_topic_is_listed_and_nothing_else() -> None:
    assert socket_routes() == set(SOCKETS)
    assert topic_kinds() == {topic.partition("/")[0] for topic in TOPICS}


async def test_a_socket_opens_for_those_who_are_signed_in_and_for_no_other_site(stage: Stage) -> None:
    cookies = {who: await sync_to_async(cookie_of)(person) for who, person in stage.people.items()}
    wrong = []
    async with running():
        for route, rule in SOCKETS.items():
            path = fill(route, {"<job_id>": stage.job.pk})
            for who in CAST:
                connection = Socket(path, cookies[who])
                if (opened := await connection.opens()) != (who in rule.who):
                    wrong.append(f"{who} {path}: {opened}")
                await connection.leave()
                if rule.hides:
                    made_up = Socket(fill(route, {"<job_id>": "zzzzzzzzzz"}), cookies[who])
                    if await made_up.opens():
                        wrong.append(f"{who} {route}: opened what is not there")
                    elif who not in rule.who and made_up.refused != connection.refused:
                        wrong.append(f"{who} {route}: {connection.refused} is not {made_up.refused}")
                    await made_up.leave()
            for spelling, origins in FOREIGN.items():
                connection = Socket(path, cookies["admin"], origins)
                if await connection.opens():
                    wrong.append(f"{spelling} {path}: opened")
                await connection.leave()
            connection = Socket(path, IDENTITY)
            if await connection.opens():
                wrong.append(f"identity headers {path}: opened")
            await connection.leave()
    assert not wrong


async def test_each_of_the_cast_follows_exactly_what_the_table_gives(stage: Stage) -> None:
    cookies = {who: await sync_to_async(cookie_of)(person) for who, person in stage.people.items()}
    real = {"<id>": stage.job.pk, "<name>": "vision", "<worker>": "worker-0"}
    made_up = {"<id>": "zzzzzzzzzz", "<name>": "no-such", "<worker>": "worker-0"}
    await sync_to_async(make_attempt)(stage.job)
    wrong = []
    async with running():
        for who in SOCKETS["/ws/"].who:
            connection = Socket("/ws/", cookies[who])
            assert await connection.opens()
            for topic, rule in TOPICS.items():
                frame = await connection.follow(fill(topic, real))
                if (frame["type"] != "refused") != (who in rule.who):
                    wrong.append(f"{who} {topic}: {frame['type']}")
                if rule.hides and who not in rule.who:
                    other = await connection.follow(fill(topic, made_up))
                    if {**frame, "topic": ""} != {**other, "topic": ""}:
                        wrong.append(f"{who} {topic}: {frame} is not {other}")
            await connection.leave()
    assert not wrong


async def test_a_list_tells_a_stranger_nothing_of_vision(stage: Stage) -> None:
    cookie = await sync_to_async(cookie_of)(stage.people["stranger"])
    async with running():
        connection = Socket("/ws/", cookie)
        assert await connection.opens()
        for topic in ("jobs", "jobs?namespace=vision", "jobs?user=alice", f"jobs?q={stage.job.pk}", "inbox", "cluster"):
            frame = await connection.follow(topic)
            assert stage.job.pk not in str(frame["data"])
        await connection.leave()


async def test_who_loses_the_role_or_the_account_loses_the_topic(stage: Stage) -> None:
    cookie = await sync_to_async(cookie_of)(stage.people["member"])
    bob = stage.people["member"]
    assert bob is not None
    async with running():
        connection = Socket("/ws/", cookie)
        assert await connection.opens()
        topic = f"job/{stage.job.pk}"
        assert (await connection.follow(topic))["type"] == "snapshot"
        await Membership.objects.filter(user=bob, namespace__slug="vision").adelete()
        await hub.check_rights()
        assert (await connection.frame_of(topic))["type"] == "refused"
        await User.objects.filter(pk=bob.pk).aupdate(is_active=False)
        await hub.check_rights()
        async with asyncio.timeout(10):
            while (message := await connection.receive())["type"] != "websocket.close":
                pass
        assert message["code"] == 4401


async def test_the_door_of_points_knows_no_person(stage: Stage) -> None:
    """A session, an admin's personal token, headers, and the token of another job's attempt are all nothing there."""
    admin = stage.people["admin"]
    assert admin is not None
    _row, text = await sync_to_async(tokens.issue)(admin, name="all", scope="admin", days=1)
    proofs: list[list[tuple[bytes, bytes]]] = [
        [],
        await sync_to_async(cookie_of)(admin),
        [(b"authorization", f"Bearer {text}".encode())],
        [(b"authorization", f"Bearer {attempt_token('zzzzzzzzzz', 1)}".encode())],
        IDENTITY,
    ]
    for route in bare_routes():
        for job_id in (stage.job.pk, "yyyyyyyyyy"):
            path = fill(route, {"<id>": job_id})
            assert [await status_of(path, proof) for proof in proofs] == [401] * len(proofs), path
    await ingest.close()


def fill(topic: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        topic = topic.replace(placeholder, value)
    return topic
