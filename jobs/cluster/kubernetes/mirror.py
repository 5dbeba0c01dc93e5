"""Everything of a cluster that decides about jobs, in memory of the one process that watches it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from jobs.cluster.fields import part, parts, text
from jobs.cluster.kubernetes.client import Api
from jobs.cluster.kubernetes.reflector import Gate, Reflector
from jobs.cluster.pods import GONE, place_of
from jobs.cluster.port import Manifest, Observation
from jobs.exceptions import ClusterUnavailable

OLDEST = 60.0  # seconds without a word from the server after which what we have is not called the present any more
KEPT_FOR = 600.0  # seconds that the last form of a pod that is gone is kept: it tells how the pod ended
MOST_KEPT = 5000


class ClusterMirror:
    """Reflectors for Jobs, Pods and Nodes without a selector, and for warnings; with what was deleted a moment ago.

    Pods of others count for free capacity, Jobs made by kubectl bear no label of ours, and a label can be forged.
    """

    def __init__(self, api: Api) -> None:
        gate = Gate()
        self._news = threading.Condition()
        self._changes = 0
        self._heard = 0
        self._gone: OrderedDict[str, tuple[float, Manifest]] = OrderedDict()
        self._by_owner: dict[str, dict[str, Manifest]] = {}  # pods by the UID of their Job, then by their own
        self._followers: dict[str, set[str]] = {}  # Jobs of other roles by the UID of the leader that owns them
        self.jobs = Reflector(api, "/apis/batch/v1/jobs", gate=gate, changed=self._note_job)
        self.pods = Reflector(api, "/api/v1/pods", gate=gate, changed=self._note_pod)
        self.nodes = Reflector(api, "/api/v1/nodes", gate=gate, changed=self._note_node)
        self.events = Reflector(
            api, "/api/v1/events", gate=gate, changed=self._note, query={"fieldSelector": "type=Warning"}
        )
        for reflector in self._all:
            reflector.start()

    @property
    def _all(self) -> tuple[Reflector, ...]:
        return self.jobs, self.pods, self.nodes, self.events

    def stop(self) -> None:
        for reflector in self._all:
            reflector.stop()

    def wait(self, timeout: float) -> bool:
        """Until something changed since `observation`, at most so long."""
        with self._news:
            return self._news.wait_for(lambda: self._changes != self._heard, timeout)

    def observation(self) -> Observation:
        """Raise ClusterUnavailable while it is not known how the cluster is now."""
        for reflector in self._all:
            age = time.monotonic() - reflector.seen_at
            if not reflector.is_complete or age > OLDEST:
                raise ClusterUnavailable(reflector.error or f"No answer to {reflector.path} yet.")
        with self._news:
            self._heard = self._changes
            self._forget()
            gone = [pod for _at, pod in self._gone.values()]
        return Observation(
            jobs=_copy(self.jobs), pods=[*_copy(self.pods), *gone], nodes=_copy(self.nodes), events=_copy(self.events)
        )

    def pod_of(self, leader_uid: str, *, role: str, index: int) -> Manifest | None:
        """The newest pod of that place, also one that is gone since a moment."""
        jobs = {leader_uid, *self._followers.get(leader_uid, ())}
        found = [pod for uid in jobs for pod in list(self._by_owner.get(uid, {}).values())]
        here = [pod for pod in found if place_of(pod) == (role, index)]
        return max(here, key=lambda pod: text(pod, "metadata", "creationTimestamp"), default=None)

    def _note(self, _old: Manifest | None, _new: Manifest | None) -> None:
        with self._news:
            self._changes += 1
            self._news.notify_all()

    def _note_job(self, old: Manifest | None, new: Manifest | None) -> None:
        for job in (old, new):
            if job is not None:
                for leader in _owners(job):
                    uids = self._followers.setdefault(leader, set())
                    (uids.discard if new is None else uids.add)(job["metadata"]["uid"])
                    if not uids:
                        del self._followers[leader]
        self._note(old, new)

    def _note_pod(self, old: Manifest | None, new: Manifest | None) -> None:
        pod = new or old
        if pod is None or not _owners(pod):
            self._note(old, new)
            return
        uid = pod["metadata"]["uid"]
        if new is None:
            pod = pod | {"metadata": pod["metadata"] | {"annotations": {**_annotations(pod), GONE: "true"}}}
            with self._news:
                self._gone[uid] = (time.monotonic(), pod)
        for owner in _owners(pod):
            self._by_owner.setdefault(owner, {})[uid] = pod
        self._note(old, new)

    def _note_node(self, old: Manifest | None, new: Manifest | None) -> None:
        """A node says that it lives every few seconds; only what the planner reads is news."""
        if old is None or new is None or _matters(old) != _matters(new):
            self._note(old, new)

    def _forget(self) -> None:
        oldest = time.monotonic() - KEPT_FOR
        while self._gone and (len(self._gone) > MOST_KEPT or next(iter(self._gone.values()))[0] < oldest):
            uid, (_at, pod) = self._gone.popitem(last=False)
            for owner in _owners(pod):
                self._by_owner.get(owner, {}).pop(uid, None)
                if not self._by_owner.get(owner, True):
                    del self._by_owner[owner]


def _copy(reflector: Reflector) -> list[Manifest]:
    while True:
        try:
            return list(reflector.objects.values())
        except RuntimeError:  # it grew meanwhile, in the reflector's thread
            continue


def _annotations(item: Manifest) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def _owners(item: Manifest) -> list[str]:
    return [owner["uid"] for owner in item["metadata"].get("ownerReferences") or ()]


def _matters(node: Manifest) -> tuple[object, ...]:
    ready = next((one for one in parts(node, "status", "conditions") if one.get("type") == "Ready"), {})
    return (
        part(node, "metadata", "labels"),
        part(node, "status", "allocatable"),
        part(node, "spec"),
        ready.get("status"),
    )
