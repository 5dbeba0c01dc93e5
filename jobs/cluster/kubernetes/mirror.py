"""Everything of a cluster that decides about jobs, in memory of the one process that watches it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from itertools import islice

from jobs.cluster.fields import is_true, number, part, parts, text
from jobs.cluster.kubernetes.client import Api
from jobs.cluster.kubernetes.reflector import Gate, Reflector
from jobs.cluster.places import numbered
from jobs.cluster.pods import GONE, place_of
from jobs.cluster.port import Manifest, Observation
from jobs.exceptions import ClusterUnavailable

OLDEST = 60.0  # seconds without a word from the server after which what we have is not called the present any more
NEWS_AT_ONCE = 50  # leaders: who changed first is stored before the last of many was looked at
KEPT_FOR = 600.0  # seconds that the last form of a pod that is gone is kept: it tells how the pod ended
MOST_KEPT = 5000


class ClusterMirror:
    """Reflectors for Jobs, Pods and Nodes without a selector, for warnings and for images that were pulled; with what was
    deleted a moment ago.

    Pods of others count for free capacity, Jobs made by kubectl bear no label of ours, and a label can be forged.
    """

    def __init__(self, api: Api, *, page: int = 500) -> None:
        gate = Gate()
        self._news = threading.Condition()
        self._changed: dict[str, None] = {}  # leaders, who changed first comes first
        self._gone: OrderedDict[str, tuple[float, Manifest]] = OrderedDict()
        self._gone_jobs: OrderedDict[str, Manifest] = OrderedDict()  # how many pods they had, by UID
        self._by_owner: dict[str, dict[str, Manifest]] = {}  # pods by the UID of their Job, then by their own
        self._followers: dict[str, set[str]] = {}  # Jobs of other roles by the UID of the leader that owns them
        self._said: dict[str, dict[str, Manifest]] = {}  # events by the UID of what they are about, then by their own
        self._over: dict[str, float] = {}  # Jobs that are over: when we heard so, until pods were heard after that
        self.jobs = Reflector(api, "/apis/batch/v1/jobs", gate=gate, page=page, changed=self._note_job)
        self.pods = Reflector(api, "/api/v1/pods", gate=gate, page=page, changed=self._note_pod, lean=_lean_pod)
        self.nodes = Reflector(api, "/api/v1/nodes", gate=gate, page=page, changed=_unnoticed)
        self.events = Reflector(
            api,
            "/api/v1/events",
            gate=gate,
            page=page,
            changed=self._note_event,
            query={"fieldSelector": "type=Warning"},
        )
        # of all that goes well this alone is told by nothing else: how long it took
        self.pulled = Reflector(
            api,
            "/api/v1/events",
            gate=gate,
            page=page,
            changed=self._note_event,
            query={"fieldSelector": "type=Normal,reason=Pulled"},
        )
        for reflector in (*self._all, self.pulled):
            reflector.start()

    @property
    def _all(self) -> tuple[Reflector, ...]:
        """Those that decide about jobs."""
        return self.jobs, self.pods, self.nodes, self.events

    def stop(self) -> None:
        for reflector in (*self._all, self.pulled):
            reflector.stop()

    def is_failing(self) -> bool:
        """Whether the server has failed us last time."""
        return bool(self.pods.error)

    def wait(self, timeout: float) -> set[str]:
        """Some leaders of the Jobs that changed and were not told yet; waits at most so long for the first."""
        with self._news:
            self._news.wait_for(lambda: bool(self._changed), timeout)
            changed = set(islice(self._changed, NEWS_AT_ONCE))
            for uid in changed:
                del self._changed[uid]
        for uid, at in list(self._over.items()):
            if self.pods.heard_at > at:
                self._over.pop(uid, None)
                changed.update(self._leaders_of(uid))
        return changed

    def observation(self, jobs: Collection[str] | None = None) -> Observation:
        """Everything, or what belongs to these leaders. Raise ClusterUnavailable while it is not known how the cluster is now."""
        age = self._age()
        if jobs is not None:
            return self._some(jobs)
        with self._news:
            self._forget()
            gone = [pod for _at, pod in self._gone.values()]
        return Observation(
            jobs=[job for job in _copy(self.jobs) if self._is_whole(job)],
            pods=[*_copy(self.pods), *gone],
            nodes=_copy(self.nodes),
            events=[*_copy(self.events), *_copy(self.pulled)],
            age=age,
        )

    def _age(self) -> float:
        """Seconds since the last word about the kind of which we heard least; one that is too old is told with its reason."""
        now = time.monotonic()
        oldest = min(self._all, key=lambda reflector: (reflector.is_complete, reflector.seen_at))
        age = now - oldest.seen_at
        if not oldest.is_complete or age > OLDEST:
            raise ClusterUnavailable(oldest.error or f"No answer to {oldest.path} yet.")
        return age

    def _some(self, leaders: Collection[str]) -> Observation:
        uids = {uid for leader in leaders for uid in (leader, *self._followers.get(leader, ()))}
        found = [job for uid in uids if (job := self.jobs.objects.get(uid)) is not None and self._is_whole(job)]
        pods = [pod for uid in uids for pod in list(self._by_owner.get(uid, {}).values())]
        about = [*uids, *(pod["metadata"]["uid"] for pod in pods)]
        events = [event for uid in about for event in list(self._said.get(uid, {}).values())]
        return Observation(jobs=found, pods=pods, nodes=(), events=events)

    def _is_whole(self, job: Manifest) -> bool:
        """A Job's end and those of its pods come by two streams: what says how it ended may still be on its way."""
        uid = job["metadata"]["uid"]
        return uid not in self._over or len(self._by_owner.get(uid, ())) >= (number(job, "spec", "parallelism") or 1)

    def pod_of(self, leader_uid: str, *, role: str, index: int) -> Manifest | None:
        """The newest pod of that place, also one that is gone since a moment."""
        jobs = {leader_uid, *self._followers.get(leader_uid, ())}
        found = [pod for uid in jobs for pod in list(self._by_owner.get(uid, {}).values())]
        if (job := self.jobs.objects.get(leader_uid) or self._gone_jobs.get(leader_uid)) is not None:
            found = numbered(job, found)
        here = [pod for pod in found if place_of(pod) == (role, index)]
        return max(here, key=lambda pod: text(pod, "metadata", "creationTimestamp"), default=None)

    def pod_uids(self) -> set[str]:
        """Of all pods that are there, or gone since a moment."""
        with self._news:
            return {*self._gone, *(pod["metadata"]["uid"] for pod in _copy(self.pods))}

    def _tell(self, uids: Iterable[str]) -> None:
        with self._news:
            self._changed |= dict.fromkeys(uids)
            self._news.notify_all()

    def _note_job(self, old: Manifest | None, new: Manifest | None) -> None:
        job = new or old
        if job is None:
            return
        uid = job["metadata"]["uid"]
        if new is None:
            self._over.pop(uid, None)
            self._gone_jobs[uid] = {"spec": {key: part(job, "spec").get(key) for key in ("parallelism", "completions")}}
            if len(self._gone_jobs) > MOST_KEPT:
                self._gone_jobs.popitem(last=False)
        elif _is_over(new) and not (old and _is_over(old)):
            self._over[uid] = time.monotonic()
        leaders = _leading(job) or [uid]
        for leader in _leading(job):
            followers = self._followers.setdefault(leader, set())
            (followers.discard if new is None else followers.add)(uid)
            if not followers:
                del self._followers[leader]
        self._tell(leaders)

    def _note_pod(self, old: Manifest | None, new: Manifest | None) -> None:
        pod = new or old
        if pod is None or not (owners := _owners(pod)):
            return
        uid = pod["metadata"]["uid"]
        if new is None:
            pod = pod | {"metadata": pod["metadata"] | {"annotations": {**_annotations(pod), GONE: "true"}}}
            with self._news:
                self._gone[uid] = (time.monotonic(), pod)
        for owner in owners:
            self._by_owner.setdefault(owner, {})[uid] = pod
        self._tell(leader for owner in owners for leader in self._leaders_of(owner))

    def _leaders_of(self, job_uid: str) -> list[str]:
        job = self.jobs.objects.get(job_uid)
        return (_leading(job) if job else []) or [job_uid]

    def _note_event(self, old: Manifest | None, new: Manifest | None) -> None:
        """That pods of a Job could not be made, or a volume not mounted, is said by nothing else."""
        event = new or old
        if event is None:
            return
        about = text(event, "involvedObject", "uid")
        said = self._said.setdefault(about, {})
        if new is not None:
            said[event["metadata"]["uid"]] = new
        else:
            said.pop(event["metadata"]["uid"], None)
            if not said:
                del self._said[about]
            return
        if text(new, "reason") == "FailedScheduling":
            return  # the pod's own condition says the same
        kind, pod = text(new, "involvedObject", "kind"), self.pods.objects.get(about)
        if kind == "Job":
            self._tell(self._leaders_of(about))
        elif kind == "Pod" and pod is not None:
            self._tell(leader for owner in _owners(pod) for leader in self._leaders_of(owner))

    def _forget(self) -> None:
        oldest = time.monotonic() - KEPT_FOR
        while self._gone and (len(self._gone) > MOST_KEPT or next(iter(self._gone.values()))[0] < oldest):
            uid, (_at, pod) = self._gone.popitem(last=False)
            for owner in _owners(pod):
                self._by_owner.get(owner, {}).pop(uid, None)
                if not self._by_owner.get(owner, True):
                    del self._by_owner[owner]


READ_OF_A_POD = ("nodeName", "priority", "priorityClassName")  # and of each container:
READ_OF_A_CONTAINER = ("name", "image", "resources", "restartPolicy")


def _lean_pod(pod: Manifest) -> Manifest:
    """Thousands of them are kept: environment, mounts and commands, most of what a pod is made of, decide nothing here."""
    spec = part(pod, "spec")
    kept = {key: spec[key] for key in READ_OF_A_POD if key in spec}
    for kind in ("containers", "initContainers"):
        kept[kind] = [{key: one[key] for key in READ_OF_A_CONTAINER if key in one} for one in parts(spec, kind)]
    return pod | {"spec": kept}


def _copy(reflector: Reflector) -> list[Manifest]:
    while True:
        try:
            return list(reflector.objects.values())
        except RuntimeError:  # it grew meanwhile, in the reflector's thread
            continue


def _is_over(job: Manifest) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _annotations(item: Manifest) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def _owners(item: Manifest) -> list[str]:
    return [owner["uid"] for owner in item["metadata"].get("ownerReferences") or ()]


def _leading(job: Manifest) -> list[str]:
    """The leader of a Job of another role; what a CronJob makes follows none."""
    return [owner["uid"] for owner in job["metadata"].get("ownerReferences") or () if owner.get("kind") == "Job"]


def _unnoticed(_old: Manifest | None, _new: Manifest | None) -> None:
    """What room the nodes have is looked at every few seconds anyway."""
