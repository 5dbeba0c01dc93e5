"""When each request came to this process: what waits for a thread, or for a busy processor, waits since then."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from accounts.auth import ARRIVED
from portal.lifespan import ASGI, Message


class Arrival:
    def __init__(self, application: ASGI) -> None:
        self.application = application

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        scope[ARRIVED] = time.monotonic()
        await self.application(scope, receive, send)
