"""A shell in a pod, as the person: RBAC decides, and the API server's audit log says who it was.

aiohttp and not the client's own websocket: that one drops the impersonation headers, and its asynchronous twin costs 178 MiB.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence

import aiohttp
from multidict import CIMultiDict

from jobs.cluster.kubernetes import channels
from jobs.cluster.kubernetes.client import Api, NotThere
from jobs.cluster.kubernetes.workloads import core_path
from jobs.cluster.port import Person
from jobs.exceptions import ClusterError, ClusterUnavailable, ObjectGone

PATIENCE = 20.0  # seconds for the way to the pod
LAST_WORD = 5.0  # for ending what runs in it
LARGEST = 2**20  # bytes of a frame; a kubelet sends 32 KiB
MARK = "TRAINHALL_SHELL"
# in any image with a POSIX shell; the mark is how its processes are found again
BEGIN = 'export TERM=xterm-256color {mark}; if command -v bash >/dev/null 2>&1; then exec bash; else exec "$0"; fi'
# a runtime does not end what it started when the line is cut: whatever still bears the mark is hung up, then killed
FINISH = (
    "for signal in HUP KILL; do for folder in /proc/[0-9]*; do"
    ' if tr "\\0" "\\n" 2>/dev/null <"$folder/environ" | grep -qx {mark}; then kill -$signal "${{folder#/proc/}}"; fi;'
    " done 2>/dev/null; [ $signal = KILL ] || sleep 1; done"
)
logger = logging.getLogger(__name__)


class PodTerminal:
    """The `Terminal` of the port."""

    def __init__(self, way: Way, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.ended = ""
        self.has_ended_itself = False
        self._way = way
        self._session = session
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                if output := channels.output_of(message.data):
                    return output
                if (ending := channels.ending_of(message.data)) is not None:
                    self.has_ended_itself = True
                    self.ended = f"The image has no shell: {ending.message}" if ending.has_no_shell else ending.message
            elif message.type is not aiohttp.WSMsgType.TEXT:
                if not self.has_ended_itself:
                    self.ended = "The connection to the pod broke off."
                return b""

    async def write(self, data: bytes) -> None:
        await self._send(channels.framed(channels.STDIN, data))

    async def resize(self, columns: int, rows: int) -> None:
        await self._send(channels.resized(columns, rows))

    async def _send(self, frame: bytes) -> None:
        try:
            await self._socket.send_bytes(frame)
        except (aiohttp.ClientError, OSError):  # it has just ended, which `read` tells
            logger.debug("a frame came after the end of %s", self._way.mark)

    async def close(self) -> None:
        try:
            await self._socket.close()
            if not self.has_ended_itself:
                await self._way.finish(self._session)
        finally:
            await self._session.close()


class Way:
    """To one container, for one person."""

    def __init__(self, api: Api, namespace: str, pod: str, person: Person, *, container: str) -> None:
        self.mark = f"{MARK}={uuid.uuid4().hex}"
        self._api = api
        self._path = f"{core_path(namespace, 'pods', pod)}/exec"
        self._person = person
        self._container = container

    async def open(self) -> PodTerminal:
        """Raise ClusterForbids, ObjectGone, ClusterRefuses or ClusterUnavailable."""
        begin = ["/bin/sh", "-c", BEGIN.format(mark=self.mark), "/bin/sh"]
        connector = aiohttp.TCPConnector(limit=0, ssl=await asyncio.to_thread(self._api.tls))
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
        session = aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=False)
        try:
            return PodTerminal(self, session, await self._connect(session, begin, stdin="true", tty="true"))
        except BaseException:
            await session.close()
            raise

    async def finish(self, session: aiohttp.ClientSession) -> None:
        """End what of it still runs. A person whose right is gone cannot: then it stays, unreachable, until the pod ends."""
        argv = ["/bin/sh", "-c", FINISH.format(mark=self.mark)]
        try:
            async with asyncio.timeout(LAST_WORD):
                socket = await self._connect(session, argv, stderr="true")
                async for _message in socket:
                    pass
        except (ClusterError, TimeoutError) as error:
            logger.info("The shell %s may still run in its pod: %s", self.mark, error)

    async def _connect(
        self, session: aiohttp.ClientSession, argv: Sequence[str], **streams: str
    ) -> aiohttp.ClientWebSocketResponse:
        query = [
            ("container", self._container),
            ("stdout", "true"),
            *streams.items(),
            *(("command", word) for word in argv),
        ]
        headers = CIMultiDict(await asyncio.to_thread(self._api.headers))
        headers["Accept"] = "*/*"  # what comes is no object
        for name, value in self._api.impersonation(self._person):
            headers.add(name, value)  # one line for each group
        try:
            async with asyncio.timeout(PATIENCE):
                return await session.ws_connect(
                    f"{self._api.host}{self._path}",
                    params=query,
                    headers=headers,
                    protocols=(channels.PROTOCOL,),
                    max_msg_size=LARGEST,
                    timeout=aiohttp.ClientWSTimeout(ws_close=2.0),
                )
        except aiohttp.WSServerHandshakeError as error:
            await self._explain(error.status)
            raise ClusterUnavailable(f"It does not open a terminal: HTTP {error.status}") from error
        except TimeoutError as error:
            raise ClusterUnavailable(f"It did not open a terminal within {PATIENCE:.0f} s.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ClusterUnavailable(f"It cannot be reached: {error}") from error

    async def _explain(self, status: int) -> None:
        """A refused handshake comes without its sentence: the same question, asked plainly, gets it."""
        try:
            await asyncio.to_thread(self._api.get, self._path, {"container": self._container}, person=self._person)
        except NotThere as error:
            raise ObjectGone(f"Its pod is gone: {error}") from error
        except ClusterError as error:
            if status in (403, 429) or status >= 500:
                raise
            logger.info("A terminal was refused with HTTP %s: %s", status, error)
