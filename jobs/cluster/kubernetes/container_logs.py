"""The lines of a worker: those of its containers, each resumed where its stored part ends, none twice and none left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice

from jobs.cluster.adopted import main_container
from jobs.cluster.fields import number, part, parts, text
from jobs.cluster.kubernetes.mirror import ClusterMirror
from jobs.cluster.kubernetes.tails import Position, Tail, Tails
from jobs.cluster.manifests import AGENT, MAIN, ROLE_LABEL, SETUP
from jobs.cluster.pods import GONE
from jobs.cluster.port import LogPositions, Manifest, ObjectRef, RawLine

FOLLOWED = (SETUP, MAIN, AGENT)  # in the order in which they begin


@dataclass(slots=True)
class _Given:
    """What was given out and waits for the word that it is stored."""

    after: int = 0
    counts: list[tuple[Tail, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(lines for _tail, lines in self.counts)


class ContainerLogs:
    """Asked again and again by the one process that watches; what was stored is told by the number of its last line."""

    def __init__(self, tails: Tails, mirror: ClusterMirror) -> None:
        self._tails, self._mirror = tails, mirror
        self._given: dict[str, _Given] = {}  # by pod UID

    def stop(self) -> None:
        self._tails.stop()

    def forget(self) -> None:
        """What was kept of pods that are gone for long."""
        known = self._mirror.pod_uids()
        self._tails.keep_only(known)
        for uid in self._given.keys() - known:
            del self._given[uid]

    def read(
        self, ref: ObjectRef, worker: str, *, after: int, limit: int, positions: LogPositions
    ) -> Iterator[RawLine]:
        role, _dash, index = worker.rpartition("-")
        pod = self._mirror.pod_of(ref.uid, role=role, index=int(index))
        if pod is None:
            return
        uid = pod["metadata"]["uid"]
        self._settle(uid, after)
        given = self._given[uid] = _Given(after)
        numbers = count(after + 1)
        for container, called in _followed(pod):
            tail = self._tail(pod, container, called, positions)
            if tail is None:
                continue
            some = list(islice(tail.waiting, limit - given.total))
            given.counts.append((tail, len(some)))
            for (at, said, overwritten), position in some:
                yield RawLine(next(numbers), at, said, overwritten, called, position)

    def _settle(self, uid: str, after: int) -> None:
        """Let go of what is stored since; where the numbers do not fit, another process stores too: begin again from its word."""
        given = self._given.pop(uid, None)
        if given is None or after == given.after:
            return
        if not given.after < after <= given.after + given.total:
            self._tails.drop(uid)
            return
        stored = after - given.after  # fewer than were given, where a block was full
        for tail, given_out in given.counts:
            gone = min(given_out, stored)
            for _ in range(gone):
                tail.waiting.popleft()
            stored -= gone

    def _tail(self, pod: Manifest, container: str, called: str, positions: LogPositions) -> Tail | None:
        """None while the container has not begun: asking for its log would be an error each time."""
        uid = pod["metadata"]["uid"]
        status = _status(pod, container)
        # a pod that was deleted may have said last that it runs, and would be followed for ever
        is_over = text(pod, "status", "phase") in ("Succeeded", "Failed") or text(pod, "metadata", "annotations", GONE)
        has_ended = bool(part(status, "state", "terminated") or is_over)
        if not part(status, "state", "running") and not part(status, "state", "terminated"):
            return self._tails.get(uid, container)
        restarts = number(status, "restartCount") or 0
        tail = self._tails.get(uid, container)
        if tail is None or (tail.restarts < restarts and not tail.waiting):
            time, same = positions.get(called) or (0.0, 0)
            metadata = pod["metadata"]
            tail = Tail(metadata["namespace"], metadata["name"], container, Position(time, int(same)), restarts)
            self._tails.begin(uid, tail)
        if has_ended and not tail.ended:
            self._tails.finish(tail)
        return tail


def _followed(pod: Manifest) -> list[tuple[str, str]]:
    """Its containers in the order in which they begin, and what they are called here: the one that counts is `main`."""
    if text(pod, "metadata", "labels", ROLE_LABEL):
        return [(name, name) for name in FOLLOWED]
    main = text(main_container(part(pod, "spec")), "name")
    names = [text(one, "name") for kind in ("initContainers", "containers") for one in parts(pod, "spec", kind)]
    return [(name, MAIN if name == main else name) for name in names]


def _status(pod: Manifest, container: str) -> Manifest:
    for kind in ("initContainerStatuses", "containerStatuses"):
        for status in parts(pod, "status", kind):
            if text(status, "name") == container:
                return status
    return {}
