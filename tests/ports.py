"""Ports for servers of tests, which nobody else on this machine is given meanwhile."""

from __future__ import annotations

import random
import socket

# below those that the kernel gives to the near end of a connection (32768 and up on Linux): one that is made between the look
# here and the start of the server would have the port
LOWEST, HIGHEST = 15_000, 32_000
_any = random.SystemRandom()  # whoever seeds the common one would send two workers to the same port
_given: set[int] = set()


def free_port(*addresses: str, row: int = 1) -> int:
    """A port, or the first of `row` in a row, that is free on all these addresses (loopback) and was not given before."""
    while True:
        first = _any.randrange(LOWEST, HIGHEST - row)
        ports = range(first, first + row)
        if _given.isdisjoint(ports) and all(
            _is_free(where, port) for where in addresses or ("127.0.0.1",) for port in ports
        ):
            _given.update(ports)
            return first


def _is_free(address: str, port: int) -> bool:
    try:
        socket.create_server((address, port), reuse_port=False).close()
    except OSError:
        return False
    return True
