"""The server's lifespan: what the web process opens once and closes at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

Message = MutableMapping[str, Any]
ASGI = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


class Opened(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...


class Lifespan:
    """Answers the lifespan protocol and hands every other scope on."""

    def __init__(self, application: ASGI, *, opened: Sequence[Opened]) -> None:
        self.application = application
        self.opened = opened

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    for part in self.opened:
                        await part.open()
                except Exception as error:  # the server tells the person; whatever it is, we do not serve half
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    raise
                await send({"type": "lifespan.startup.complete"})
            else:
                for part in reversed(self.opened):
                    await part.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
