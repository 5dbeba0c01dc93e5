"""Room on nodes: what is free, and where a whole gang fits (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for, per worker, and how many workers."""

    workers: int
    gpus: int
    gpu_type: str  # "" means any
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Node:
    """What a node has in all for jobs."""

    name: str
    gpus: int
    gpu_type: str
    cpu_millis: int
    memory_bytes: int
    ready: bool = True


@dataclass(slots=True)
class _Room:
    gpus: int
    cpu_millis: int
    memory_bytes: int

    def holds(self, request: Request) -> int:
        """How many workers of this request have room here."""
        bounds = [
            room // asked
            for room, asked in (
                (self.gpus, request.gpus),
                (self.cpu_millis, request.cpu_millis),
                (self.memory_bytes, request.memory_bytes),
            )
            if asked > 0
        ]
        return max(0, min(bounds, default=request.workers))

    def add(self, request: Request, workers: int) -> None:
        self.gpus += workers * request.gpus
        self.cpu_millis += workers * request.cpu_millis
        self.memory_bytes += workers * request.memory_bytes


class Free:
    """What is free on each ready node. Changes only by `take` and `give_back`."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = {node.name: node for node in nodes if node.ready}
        self.rooms = {node.name: _Room(node.gpus, node.cpu_millis, node.memory_bytes) for node in self.nodes.values()}

    def suits(self, node: Node, request: Request) -> bool:
        return not (request.gpus and request.gpu_type) or node.gpu_type == request.gpu_type

    def place(self, request: Request) -> tuple[str, ...] | None:
        """A node for each worker, or None: all or nothing.

        Nodes with the least room that still hold something go first, so that whole nodes stay whole for larger jobs.
        """
        left = request.workers
        chosen: list[str] = []
        rooms = [
            (holds, name)
            for name, room in self.rooms.items()
            if self.suits(self.nodes[name], request) and (holds := room.holds(request))
        ]
        # one node that takes the whole gang beats several that share it
        for holds, name in sorted(rooms):
            if holds >= left:
                return (name,) * left
        for holds, name in sorted(rooms, reverse=True):
            share = min(holds, left)
            chosen += [name] * share
            left -= share
            if not left:
                return tuple(chosen)
        return None

    def take(self, request: Request, nodes: Sequence[str]) -> None:
        self._move(request, nodes, -1)

    def give_back(self, request: Request, nodes: Sequence[str]) -> None:
        self._move(request, nodes, 1)

    def _move(self, request: Request, nodes: Sequence[str], sign: int) -> None:
        for name in nodes:
            if name in self.rooms:  # a node that is gone or not ready has nothing to count
                self.rooms[name].add(request, sign)

    def why_no_room(self, request: Request) -> str:
        """A sentence with numbers about a request that `place` could not place."""
        mine = {name: room for name, room in self.rooms.items() if self.suits(self.nodes[name], request)}
        kind = f"{request.gpu_type} " if request.gpu_type else ""
        if request.gpus:
            free = sum(max(0, room.gpus) for room in mine.values())
            total = sum(self.nodes[name].gpus for name in mine)
            largest = max((room.gpus for room in mine.values()), default=0)
            need = request.workers * request.gpus
            if free < need:
                return f"Waiting for {need - free} more {kind}GPU{'s' * (need - free > 1)}: {free} of {total} are free."
            if largest < request.gpus:
                return (
                    f"{free} {kind}GPUs are free, but at most {largest} on one node; "
                    f"each worker needs {request.gpus} on one."
                )
        for asked, word, scale, has in (
            (request.cpu_millis, "CPUs", 1000, [room.cpu_millis for room in mine.values()]),
            (request.memory_bytes, "GiB of memory", 2**30, [room.memory_bytes for room in mine.values()]),
        ):
            free = sum(max(0, room) for room in has)
            if free < request.workers * asked:
                return (
                    f"Waiting for {(request.workers * asked - free) / scale:.3g} more {word}: "
                    f"{free / scale:.3g} are free, it asks for {request.workers * asked / scale:.3g}."
                )
        return f"There is room in all, but not for {request.workers} whole workers on the nodes as they are filled now."

    def why_never(self, request: Request) -> str | None:
        """Why the request could not be placed even if every ready node were empty, or None."""
        if not self.nodes:
            return None
        if request.gpus and request.gpu_type:
            types = sorted({node.gpu_type for node in self.nodes.values() if node.gpus and node.gpu_type})
            if request.gpu_type not in types:
                have = f"there are {', '.join(types)}" if types else "there are none"
                return f"Never starts as asked: no node has {request.gpu_type} GPUs; {have}."
        if Free(tuple(self.nodes.values())).place(request) is not None:
            return None
        suited = [node for node in self.nodes.values() if self.suits(node, request)]
        for asked, word, scale, most in (
            (request.gpus, "GPUs", 1, max(node.gpus for node in suited)),
            (request.cpu_millis, "CPUs", 1000, max(node.cpu_millis for node in suited)),
            (request.memory_bytes, "GiB of memory", 2**30, max(node.memory_bytes for node in suited)),
        ):
            if asked > most:
                return (
                    f"Never starts as asked: each worker asks for {asked / scale:.4g} {word}, "
                    f"the largest node has {most / scale:.4g}."
                )
        return (
            f"Never starts as asked: {request.workers} workers of this size do not fit on the "
            f"{len(suited)} node{'s' * (len(suited) != 1)} there {'are' if len(suited) != 1 else 'is'}, even when empty."
        )
