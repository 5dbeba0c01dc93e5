"""A page's socket, as a test holds it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from django.conf import settings
from django.test import Client
from websockets.sync.client import ClientConnection, connect

from tests.metrics.server import Server


def session_of(user: Any) -> str:
    browser = Client()
    browser.force_login(user)
    return browser.cookies[settings.SESSION_COOKIE_NAME].value


def open_socket(server: Server, session: str, *, origin: str | None = None, **how: Any) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{server.port}/ws/",
        origin=origin or server.origin,  # type: ignore[arg-type]
        additional_headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"},
        max_size=None,
        proxy=None,
        legacy=True,  # a plain connection, not a context manager
        **how,
    )


class Page:
    """Remembers every frame; waits for the one a test looks for."""

    def __init__(self, server: Server, user: Any, **how: Any) -> None:
        self.session = session_of(user)
        self.socket = open_socket(server, self.session, **how)
        self.frames: list[dict[str, Any]] = []

    def __enter__(self) -> Page:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()

    def say(self, frame: Any) -> None:
        self.socket.send(frame if isinstance(frame, str) else json.dumps(frame))

    def follow(self, topic: str, since: int | None = None) -> dict[str, Any]:
        """Subscribe, and return the answer."""
        self.say({"subscribe": {topic: since}})
        return self.next(topic)

    def next(self, topic: str, *, within: float = 8.0) -> dict[str, Any]:
        """The next frame of a topic; beats are passed over."""
        deadline = time.monotonic() + within
        while True:
            frame = json.loads(self.socket.recv(timeout=max(deadline - time.monotonic(), 0.01)))
            self.frames.append(frame)
            if frame["topic"] == topic and frame["type"] != "beat":
                return frame

    def until(self, wanted: Callable[[dict[str, Any]], bool], *, within: float = 8.0) -> dict[str, Any]:
        """The first frame of all that came or will come for which this is true."""
        for frame in self.frames:
            if wanted(frame):
                return frame
        deadline = time.monotonic() + within
        while True:
            frame = json.loads(self.socket.recv(timeout=max(deadline - time.monotonic(), 0.01)))
            self.frames.append(frame)
            if wanted(frame):
                return frame

    def silence(self, seconds: float) -> list[dict[str, Any]]:
        """Frames that come although none should, but beats."""
        heard: list[dict[str, Any]] = []
        deadline = time.monotonic() + seconds
        while True:
            try:
                frame = json.loads(self.socket.recv(timeout=max(deadline - time.monotonic(), 0.0)))
            except TimeoutError:
                return heard
            if frame["type"] != "beat":
                heard.append(frame)
