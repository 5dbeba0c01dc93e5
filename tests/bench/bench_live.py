"""From a point logged in a job, or a change of its status, to the frame that 20 open pages receive.

The bars: points p95 under 1 s, statuses p95 under 2 s. The job stamps what it logs with the time, on the same clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from place import Portal, Table, cookie_of, p95, portal, quiet
from websockets.asyncio.client import connect

VIEWERS = 20
POINTS = 100
CHANGES = 10  # short jobs whose start and end are watched
POINT_BAR, STATUS_BAR = 1000.0, 2000.0
TRAINING = f"""
import time
import trainhall

for step in range({POINTS}):
    trainhall.log({{"at": time.time()}}, step=step)
    time.sleep(0.2)
"""


@dataclass
class Viewer:
    """A page with the list and one job open; keeps when it was told what."""

    place: Portal
    cookie: str
    points: dict[int, float] = field(default_factory=dict)  # step -> seconds late
    statuses: dict[tuple[str, str], float] = field(default_factory=dict)  # (job, status) -> when it was told first
    socket: Any = None

    async def follow(self) -> None:
        origin = f"http://127.0.0.1:{self.place.port}"
        address = origin.replace("http", "ws") + "/ws/"
        headers = {"Cookie": self.cookie}
        async with connect(
            address, origin=origin, additional_headers=headers, max_size=None, proxy=None
        ) as self.socket:
            await self.subscribe("jobs?namespace=vision")
            async for text in self.socket:
                self.take(json.loads(text), time.time())

    async def subscribe(self, topic: str) -> None:
        await self.socket.send(json.dumps({"subscribe": {topic: None}}))

    def take(self, frame: dict[str, Any], now: float) -> None:
        if frame["type"] not in ("change", "snapshot"):
            return
        if frame["topic"].startswith("points/"):
            for series in frame["data"]["series"]:
                if frame["type"] == "change" and series["key"] == "at":
                    for step, at in zip(series["step"], series["value"], strict=True):
                        self.points[step] = (now - at) * 1000
        elif job := frame["data"].get("job"):
            self.statuses.setdefault((job["id"], job["status"]), now)


async def watch_points(place: Portal, viewers: list[Viewer]) -> list[float]:
    document = {"namespace": "vision", "runtime": "numpy", "command": "python train.py"}
    document["code"] = {"files": {"train.py": TRAINING}}
    job = (await asyncio.to_thread(place.rest, "jobs/", document))["id"]
    for viewer in viewers:
        await viewer.subscribe(f"points/{job}")
    await asyncio.to_thread(place.wait_for, job, "succeeded", seconds=90)
    await asyncio.sleep(2)
    # a page that subscribes after the first points has those in its snapshot
    heard = [set(viewer.points) for viewer in viewers]
    if min(len(steps) for steps in heard) < POINTS - 10:
        raise RuntimeError(f"Frames are missing: {[len(steps) for steps in heard]} of {POINTS} points")
    return [late for viewer in viewers for late in viewer.points.values()]


async def watch_statuses(place: Portal, viewers: list[Viewer]) -> tuple[list[float], list[float]]:
    starts: list[float] = []
    ends: list[float] = []
    for _change in range(CHANGES):
        job = await asyncio.to_thread(place.submit, "date +%s.%N; sleep 1; date +%s.%N")
        await asyncio.to_thread(place.wait_for, job, "succeeded")
        await asyncio.sleep(1)
        lines = (await asyncio.to_thread(place.rest, f"jobs/{job}/logs/"))["lines"]
        began, ended = (float(line["text"]) for line in lines)
        starts += [(viewer.statuses[job, "running"] - began) * 1000 for viewer in viewers]
        ends += [(viewer.statuses[job, "succeeded"] - ended) * 1000 for viewer in viewers]
    return starts, ends


async def bench(place: Portal, cookie: str) -> int:
    viewers = [Viewer(place, cookie) for _viewer in range(VIEWERS)]
    async with asyncio.TaskGroup() as group:
        pages = [group.create_task(viewer.follow()) for viewer in viewers]
        await asyncio.sleep(3)
        points = await watch_points(place, viewers)
        starts, ends = await watch_statuses(place, viewers)
        for page in pages:
            page.cancel()
    table = Table(f"Live, {VIEWERS} viewers; p95 over all of them")
    table.line(f"{POINTS} points logged, to the frame", p95(points), POINT_BAR, beside=f"slowest {max(points):.0f} ms")
    table.line(
        f"{CHANGES} processes begun, to `running`", p95(starts), STATUS_BAR, beside=f"slowest {max(starts):.0f} ms"
    )
    table.line(
        f"{CHANGES} processes ended, to `succeeded`", p95(ends), STATUS_BAR, beside=f"slowest {max(ends):.0f} ms"
    )
    return table.missed


def main() -> int:
    with portal() as place:
        cookie = cookie_of("alice")
        quiet(3)
        return 1 if asyncio.run(bench(place, cookie)) else 0


if __name__ == "__main__":
    sys.exit(main())
