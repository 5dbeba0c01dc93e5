"""A9 on the socket: no frame tells a stranger of a confidential project, whatever they follow and whatever happens there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import Membership, User
from accounts.roles import Role
from jobs import dispatch, lifecycle, live
from jobs.models import Job
from metrics.live import hub
from tests.flows.hidden_project import MARK, SLUG, Hidden
from tests.flows.test_access_sockets import Socket, cookie_of, running
from tests.metrics.makers import report


@pytest.mark.django_db(transaction=True)
async def test_no_frame_has_a_byte_of_it(own: dict[str, str], hidden: Hidden, dave: User, alice: User) -> None:
    """Everything a stranger may subscribe to, or try to, while the hidden project is busy."""
    cookie = await sync_to_async(cookie_of)(dave)
    names = [hidden.running.pk, hidden.waiting.pk]
    topics = ["jobs", "cluster", "inbox", f"job/{own['job_id']}", f"points/{own['job_id']}", "namespace/commons"]
    topics += [f"jobs?{name}={value}" for name in ("namespace", "user", "tag", "q") for value in (SLUG, MARK)]
    topics += ["jobs?status=running", "jobs?gpu=any", f"namespace/{SLUG}", f"logs/{own['job_id']}/worker-0"]
    topics += [f"{kind}/{job_id}" for kind in ("job", "points", "logs") for job_id in names]
    topics += [f"logs/{job_id}/worker-0" for job_id in names]
    frames: list[dict[str, Any]] = []
    async with running():
        await hub.open()
        connection = Socket("/ws/", cookie)
        assert await connection.opens()
        for topic in topics:
            frames.append(await connection.follow(topic))
        refused = {frame["topic"] for frame in frames if frame["type"] == "refused"}
        assert refused == {topic for topic in topics if SLUG in topic and "?" not in topic} | {
            topic for topic in topics if any(name in topic for name in names)
        }
        await asyncio.sleep(0.5)  # the hub listens by now
        await sync_to_async(be_busy)(hidden)
        await sync_to_async(touch)(own["job_id"])
        seen: set[str] = set()
        while not {"jobs", f"job/{own['job_id']}"} <= seen:
            frame = json.loads((await connection.receive())["text"])
            frames.append(frame)
            if own["job_id"] in json.dumps(frame["data"]):
                seen.add(frame["topic"])
        await hub.check_rights()
        await hub.look()
        async with asyncio.timeout(3):
            while (frame := json.loads((await connection.receive())["text"]))["topic"] != "":  # the beat
                frames.append(frame)
        await connection.leave()
    for frame in frames:
        text = json.dumps({**frame, "topic": ""}).lower()
        assert MARK not in text and not any(name in text for name in names), frame


def be_busy(hidden: Hidden) -> None:
    """A move, a batch of points, a new job and a new row of its people."""
    running_job = Job.objects.get(pk=hidden.running.pk)
    lifecycle.write(running_job, reason=f"{MARK} goes on", tags=[MARK])
    report(running_job, {f"{MARK}/acc": [(1, 0.5)]}, attempt=2)
    lifecycle.explain(Job.objects.get(pk=hidden.waiting.pk), "Held", f"Held by {MARK}-lead.")
    Membership.objects.filter(namespace=hidden.project, user=hidden.lead).update(role=Role.MEMBER)
    live.publish("cluster", None)
    dispatch.admit_waiting()


def touch(job_id: str) -> None:
    lifecycle.write(Job.objects.get(pk=job_id), notes="seen")
