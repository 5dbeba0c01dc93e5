"""Websockets are opened by our own pages only: a cookie alone would let any site of the web open one."""

from __future__ import annotations

from typing import Any

from django.conf import settings


class OnlyOurOrigin:
    """Refuses, before accept, a handshake whose Origin is not exactly one of ours: scheme, host and port.

    A missing Origin is refused too: every browser sends one, and sockets have no other door.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        if len(origins) == 1 and origins[0].decode("latin-1") in settings.TRAINHALL_ORIGINS:
            await self.application(scope, receive, send)
            return
        # closed before accept, which the server answers with 403
        await send({"type": "websocket.close", "code": 4403})
