"""Room on nodes: what is free, and where a whole gang fits (pure)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from jobs.gang import WORDS, WORKER, PodGroup


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for, per worker, and how many workers; and the pods of other roles beside them."""

    workers: int
    gpus: int
    gpu_type: str  # "" means any
    cpu_millis: int
    memory_bytes: int
    beside: tuple[PodGroup, ...] = ()

    @classmethod
    def of(cls, groups: Iterable[PodGroup], *, gpu_type: str) -> Request:
        others = {group.role: group for group in groups}
        workers = others.pop(WORKER)
        return cls(
            workers=workers.count,
            gpus=workers.gpus,
            gpu_type=gpu_type,
            cpu_millis=workers.cpu_millis,
            memory_bytes=workers.memory_bytes,
            beside=tuple(others.values()),
        )

    @property
    def groups(self) -> tuple[PodGroup, ...]:
        """In the order in which nodes are named for the pods: the workers last."""
        return (*self.beside, PodGroup(WORKER, self.workers, self.gpus, self.cpu_millis, self.memory_bytes))

    @property
    def total_gpus(self) -> int:
        return self.workers * self.gpus

    @property
    def total_cpu_millis(self) -> int:
        return sum(group.count * group.cpu_millis for group in self.groups)

    @property
    def total_memory_bytes(self) -> int:
        return sum(group.count * group.memory_bytes for group in self.groups)

    @property
    def weight(self) -> int:
        """A pod counts as its GPUs, or one."""
        return sum(group.count * max(1, group.gpus) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Node:
    """What a node has in all for jobs."""

    name: str
    gpus: int
    gpu_type: str
    cpu_millis: int
    memory_bytes: int
    ready: bool = True
    domains: tuple[str, ...] = ()  # its rack, its block and so on, the closest first; "" where it says nothing


@dataclass(slots=True)
class _Room:
    gpus: int
    cpu_millis: int
    memory_bytes: int

    def holds(self, group: PodGroup) -> int:
        """How many pods of this group have room here."""
        bounds = [
            room // asked
            for room, asked in (
                (self.gpus, group.gpus),
                (self.cpu_millis, group.cpu_millis),
                (self.memory_bytes, group.memory_bytes),
            )
            if asked > 0
        ]
        return max(0, min(bounds, default=group.count))

    def add(self, group: PodGroup, pods: int) -> None:
        self.gpus += pods * group.gpus
        self.cpu_millis += pods * group.cpu_millis
        self.memory_bytes += pods * group.memory_bytes


class Free:
    """What is free on each ready node. Changes only by `take` and `give_back`."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = {node.name: node for node in nodes if node.ready}
        self.rooms = {node.name: _Room(node.gpus, node.cpu_millis, node.memory_bytes) for node in self.nodes.values()}

    def suits(self, node: Node, group: PodGroup, gpu_type: str) -> bool:
        return not (group.gpus and gpu_type) or node.gpu_type == gpu_type

    def place(self, request: Request) -> tuple[str, ...] | None:
        """A node for each pod, in the order of the request's groups, or None: all or nothing."""
        if not request.beside:
            return self._place(request.groups[0], request.gpu_type)
        for order in _orders(request):
            chosen, missing = self._place_in(order, request.gpu_type)
            if missing is None:
                return tuple(node for group in request.groups for node in chosen[group.role])
        return None

    def _place_in(
        self, order: Sequence[PodGroup], gpu_type: str
    ) -> tuple[dict[str, tuple[str, ...]], tuple[PodGroup, str] | None]:
        """Nodes by role; and the first group without room, with the reason, asked while the ones before it are placed."""
        chosen: dict[str, tuple[str, ...]] = {}
        with self._unchanged():
            for group in order:
                nodes = self._place(group, gpu_type)
                if nodes is None:
                    return chosen, (group, self._why_no_room(group, gpu_type))
                self._move_group(group, nodes, -1)
                chosen[group.role] = nodes
        return chosen, None

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        before = {name: (room.gpus, room.cpu_millis, room.memory_bytes) for name, room in self.rooms.items()}
        try:
            yield
        finally:
            self.rooms = {name: _Room(*amounts) for name, amounts in before.items()}

    def _place(self, group: PodGroup, gpu_type: str) -> tuple[str, ...] | None:
        """Nodes with the least room that still hold something go first, so that whole nodes stay whole for larger jobs."""
        left = group.count
        chosen: list[str] = []
        rooms = [
            (holds, name)
            for name, room in self.rooms.items()
            if self.suits(self.nodes[name], group, gpu_type) and (holds := room.holds(group))
        ]
        # one node that takes the whole gang beats several that share it
        for holds, name in sorted(rooms):
            if holds >= left:
                return (name,) * left
        for holds, name in sorted(self._close(rooms, left), reverse=True):
            share = min(holds, left)
            chosen += [name] * share
            left -= share
            if not left:
                return tuple(chosen)
        return None

    def _close(self, rooms: list[tuple[int, str]], pods: int) -> list[tuple[int, str]]:
        """The rooms of one rack that holds all these pods, the fullest such; else of one block, and so on; else all rooms."""
        for level in range(max((len(self.nodes[name].domains) for _holds, name in rooms), default=0)):
            domains: dict[str, list[tuple[int, str]]] = defaultdict(list)
            for holds, name in rooms:
                if domain := self.nodes[name].domains[level]:
                    domains[domain].append((holds, name))
            large = [
                (total, domain) for domain, own in domains.items() if (total := sum(one[0] for one in own)) >= pods
            ]
            if large:
                return domains[min(large)[1]]
        return rooms

    def take(self, request: Request, nodes: Sequence[str]) -> None:
        self._move(request, nodes, -1)

    def give_back(self, request: Request, nodes: Sequence[str]) -> None:
        self._move(request, nodes, 1)

    def _move(self, request: Request, nodes: Sequence[str], sign: int) -> None:
        rest = list(nodes)
        for group in request.groups:
            self._move_group(group, rest[: group.count], sign)
            del rest[: group.count]

    def _move_group(self, group: PodGroup, nodes: Sequence[str], sign: int) -> None:
        for name in nodes:
            if name in self.rooms:  # a node that is gone or not ready has nothing to count
                self.rooms[name].add(group, sign)

    def why_no_room(self, request: Request) -> str:
        """A sentence with numbers about a request that `place` could not place."""
        if not request.beside:
            return self._why_no_room(request.groups[0], request.gpu_type)
        _chosen, missing = self._place_in(_orders(request)[0], request.gpu_type)
        assert missing is not None
        group, why = missing
        return f"{_for_role(group)}{why}"

    def _why_no_room(self, group: PodGroup, gpu_type: str) -> str:
        mine = {name: room for name, room in self.rooms.items() if self.suits(self.nodes[name], group, gpu_type)}
        kind = f"{gpu_type} " if gpu_type else ""
        if group.gpus:
            free = sum(max(0, room.gpus) for room in mine.values())
            total = sum(self.nodes[name].gpus for name in mine)
            largest = max((room.gpus for room in mine.values()), default=0)
            need = group.count * group.gpus
            if free < need:
                return f"Waiting for {need - free} more {kind}GPU{'s' * (need - free > 1)}: {free} of {total} are free."
            if largest < group.gpus:
                return (
                    f"{free} {kind}GPUs are free, but at most {largest} on one node; "
                    f"each worker needs {group.gpus} on one."
                )
        for asked, word, scale, has in (
            (group.cpu_millis, "CPUs", 1000, [room.cpu_millis for room in mine.values()]),
            (group.memory_bytes, "GiB of memory", 2**30, [room.memory_bytes for room in mine.values()]),
        ):
            free = sum(max(0, room) for room in has)
            if free < group.count * asked:
                return (
                    f"Waiting for {(group.count * asked - free) / scale:.3g} more {word}: "
                    f"{free / scale:.3g} are free, it asks for {group.count * asked / scale:.3g}."
                )
        return (
            f"There is room in all, but not for {group.count} whole {group.words} on the nodes as they are filled now."
        )

    def why_never(self, request: Request) -> str | None:
        """Why the request could not be placed even if every ready node were empty, or None."""
        if not self.nodes:
            return None
        if request.gpus and request.gpu_type:
            types = sorted({node.gpu_type for node in self.nodes.values() if node.gpus and node.gpu_type})
            if request.gpu_type not in types:
                have = f"there are {', '.join(types)}" if types else "there are none"
                return f"Never starts as asked: no node has {request.gpu_type} GPUs; {have}."
        empty = Free(tuple(self.nodes.values()))
        if empty.place(request) is not None:
            return None
        for group in request.groups:
            if larger := self._larger_than_any(group, request.gpu_type):
                return larger
        pods = " and ".join(f"{group.count} {group.words}" for group in request.groups)
        sizes = "of this size" if not request.beside else "of these sizes"
        suited = [node for node in self.nodes.values() if self.suits(node, request.groups[-1], request.gpu_type)]
        return (
            f"Never starts as asked: {pods} {sizes} do not fit on the "
            f"{len(suited)} node{'s' * (len(suited) != 1)} there {'are' if len(suited) != 1 else 'is'}, even when empty."
        )

    def _larger_than_any(self, group: PodGroup, gpu_type: str) -> str | None:
        suited = [node for node in self.nodes.values() if self.suits(node, group, gpu_type)]
        for asked, word, scale, most in (
            (group.gpus, "GPUs", 1, max(node.gpus for node in suited)),
            (group.cpu_millis, "CPUs", 1000, max(node.cpu_millis for node in suited)),
            (group.memory_bytes, "GiB of memory", 2**30, max(node.memory_bytes for node in suited)),
        ):
            if asked > most:
                return (
                    f"Never starts as asked: each {WORDS[group.role][0]} asks for {asked / scale:.4g} {word}, "
                    f"the largest node has {most / scale:.4g}."
                )
        return None


def _orders(request: Request) -> list[list[PodGroup]]:
    """The largest pods first leaves the small ones the gaps; where that fails, the other way round may do."""
    largest_first = sorted(
        request.groups, key=lambda group: (group.gpus, group.cpu_millis, group.memory_bytes), reverse=True
    )
    return [largest_first, largest_first[::-1]]


def _for_role(group: PodGroup) -> str:
    return f"Its {group.words if group.count == 1 else f'{group.count} {group.words}'}: "
