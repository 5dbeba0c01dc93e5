"""A proxy between a client and the portal that can be told to misbehave, as networks and overloaded servers do."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from types import TracebackType

from tests.ports import free_port

FAULTS = ("cut", "silent", "busy", "refused", "lost answer")
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class FaultProxy:
    """`pass` forwards; the others are `FAULTS`. A change of mode cuts every connection; `met` counts requests by mode."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = free_port()
        self.mode = "pass"
        self.met: Counter[str] = Counter()
        self.answered = 0  # answers that were passed on
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> FaultProxy:
        self._listen()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.be("refused")

    def be(self, mode: str) -> None:
        assert mode in (*FAULTS, "pass")
        self.mode = mode
        if mode == "refused" and self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            connections, self._open = self._open, set()
        for one in connections:
            with contextlib.suppress(OSError):  # its own thread was quicker
                one.shutdown(socket.SHUT_RDWR)
        if mode != "refused" and self._listener is None:
            self._listen()

    def _listen(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _address = listener.accept()
            except OSError:
                return  # closed: the mode is "refused"
            with self._lock:
                self._open.add(client)
            threading.Thread(target=self._serve, args=(client, self.mode), daemon=True).start()

    def _serve(self, client: socket.socket, mode: str) -> None:
        with client, contextlib.suppress(OSError):  # either side may be gone at any moment: that is what this is for
            while request := _message(client):
                self.met[mode] += 1
                if mode == "cut":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    return
                if mode == "silent":
                    time.sleep(30)
                    return
                if mode == "busy":
                    client.sendall(BUSY)
                    return
                with socket.create_connection(("127.0.0.1", self.target), timeout=30) as server:
                    server.sendall(request)
                    answer = _message(server)
                if mode == "lost answer":
                    return
                client.sendall(answer)
                self.answered += 1


def _message(line: socket.socket) -> bytes:
    """One request or answer with a Content-Length; empty once the other side is gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = line.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _blank, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(row.split(b":")[1]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        piece = line.recv(65536)
        if not piece:
            return b""
        body += piece
    return head + b"\r\n\r\n" + body
