"""The cluster as it is, brought into the database: nothing is remembered, everything is looked at again."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import islice
from threading import Event
from typing import Any

from django.db import OperationalError, connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from jobs import adoption, dispatch, live
from jobs.cluster.events import by_object
from jobs.cluster.observed import free_capacity
from jobs.cluster.places import numbered
from jobs.cluster.port import Cluster as Port
from jobs.cluster.port import Manifest, Observation
from jobs.cluster.registry import tolerations
from jobs.cluster_events import EventKeeper
from jobs.exceptions import ClusterUnavailable, ObjectDiffers
from jobs.gang import job_names
from jobs.logs.lines import LogFollower, Sink
from jobs.looks import Look, bring_in_line
from jobs.models import Attempt, Cluster, Worker
from jobs.states import JobStatus
from jobs.worker_rows import workers_of

LOOK_EVERY = 5.0  # seconds; so that the age on the page stays small
LINES_EVERY = 0.2  # seconds; with every turn where no news come, which are not waited for longer
LINES_FOR = 0.05  # seconds at a time, while other things may have changed
AT_ONCE = 25  # attempts that are looked at without news before news are asked for again
RETRY_AFTER = 2.0
logger = logging.getLogger(__name__)


class Mirror:
    """Keeps the rows of one cluster's attempts equal to what is there."""

    def __init__(self, name: str, port: Port, *, sink: Sink | None = None) -> None:
        self.name = name
        self.port = port
        self.follower = LogFollower(port, sink)
        self.seen_at = 0.0
        self.repaired_at = 0.0  # monotonic: when every attempt was looked at; 0 after an error, which may lose changes
        self.round_began = 0.0  # monotonic: of the round of looks at every attempt that is under way; 0: none is
        self.waiting: OrderedDict[str, None] = OrderedDict()  # UIDs of attempts to be looked at when news leave time
        self.live: OrderedDict[str, tuple[Attempt, list[Worker]]] = OrderedDict()  # by UID: whose lines are followed
        self.followed_at = 0.0
        self.nodes: list[dict[str, Any]] = []
        self.keeper = EventKeeper()

    def run(self, stop: Event, *, may_act: Callable[[], bool] = lambda: True) -> None:
        """Look again on every change and at least every few seconds; never give up. One last look after `stop`.

        Return as soon as it may not act any more: somebody else does.
        """
        while may_act() and not stop.is_set():
            try:
                self._turn()
            except ClusterUnavailable as error:
                logger.warning("%s cannot be seen: %s", self.name, error)
                self.repaired_at = 0.0
                Cluster.objects.filter(name=self.name).update(error=str(error))
                stop.wait(RETRY_AFTER)
            except OperationalError as error:
                logger.warning("The database does not answer: %s", error)
                self.repaired_at = 0.0
                connection.close()
                stop.wait(RETRY_AFTER)
        if not may_act():
            return
        try:
            self.look()
        except ClusterUnavailable as error:
            logger.warning("%s was not looked at a last time: %s", self.name, error)

    def _turn(self) -> None:
        """News first, in the small pieces in which they come; of all else only a little before news are asked for again."""
        changed = self.port.changes(0.0 if self.waiting else LINES_EVERY)
        if changed is None or not self.repaired_at:
            self.look()
            return
        if changed:
            self.look_at(changed)
        now = time.monotonic()
        if not self.round_began and now - self.repaired_at >= self.port.repair_every:
            self.round_began = now
            self._put_off(self._attempts())
        if now - self.seen_at >= LOOK_EVERY:
            self.look_around()
        self._look_at_waiting()
        if not changed or now - self.followed_at >= LINES_EVERY:
            self._follow()

    def _follow(self) -> None:
        """New lines of whoever runs; of very many at once only some, so that no change waits long behind lines."""
        self.followed_at = time.monotonic()
        end = self.followed_at + LINES_FOR
        for _one in range(len(self.live)):
            uid, (attempt, workers) = self.live.popitem(last=False)
            self.live[uid] = (attempt, workers)  # behind the others
            self.follower.follow(attempt, workers)
            if time.monotonic() >= end:
                return

    def look(self) -> None:
        """One full look: list, then bring every attempt that is not yet cleaned away in line."""
        began = time.monotonic()
        # the rows first: an attempt created after this list is not taken for one that vanished
        attempts = list(self._attempts().exclude(uid=""))
        seen = self.port.observe()
        self.store_nodes(seen)
        self.live.clear()
        self.waiting.clear()
        self._bring_in_line(attempts, seen)
        adoption.look(self.name, self.port, seen.jobs)
        self.repaired_at, self.round_began = began, 0.0

    def look_around(self) -> None:
        """The nodes; and the attempts that something is still to be done for, soon. Those that simply run are told of."""
        seen = self.port.observe()
        self.store_nodes(seen)
        simply_runs = Q(job__status=JobStatus.RUNNING, ended_at=None, stop_code="")
        self._put_off(self._attempts().exclude(simply_runs))
        adoption.look(self.name, self.port, seen.jobs)

    def look_at(self, uids: Collection[str]) -> None:
        """Only these: with thousands on a cluster a full look for each change would be too slow."""
        attempts = list(self._attempts().filter(uid__in=uids))
        seen = self.port.observe(uids)
        self._bring_in_line(attempts, seen)
        adoption.look(self.name, self.port, seen.jobs, asked=uids)
        for uid in uids:
            self.waiting.pop(uid, None)

    def _put_off(self, attempts: QuerySet[Attempt]) -> None:
        """Who waits already keeps its place, so that each has its turn."""
        self.waiting |= dict.fromkeys(attempts.exclude(uid="").order_by("pk").values_list("uid", flat=True))

    def _look_at_waiting(self) -> None:
        """Each once in a round, and no change waits until all of them were looked at."""
        if self.waiting:
            self.look_at(list(islice(self.waiting, AT_ONCE)))
        if self.round_began and not self.waiting:
            self.repaired_at, self.round_began = self.round_began, 0.0

    def _attempts(self) -> QuerySet[Attempt]:
        return Attempt.objects.filter(cluster=self.name, deleted_at=None).select_related(
            "job__namespace", "job__cancel_requested_by", "job__owner"
        )

    def _bring_in_line(self, attempts: Sequence[Attempt], seen: Observation) -> None:
        jobs = {job["metadata"]["uid"]: job for job in seen.jobs}
        others: dict[str, list[Manifest]] = defaultdict(list)  # Jobs of other roles, by the leader's UID
        for job in seen.jobs:
            for owner in job["metadata"].get("ownerReferences") or ():
                others[owner["uid"]].append(job)
        pods: dict[str, list[Manifest]] = defaultdict(list)
        for pod in seen.pods:
            for owner in pod["metadata"].get("ownerReferences") or ():
                pods[owner["uid"]].append(pod)
        said = by_object(seen.events)
        workers = workers_of(attempts)
        looks, heard = [], []
        for attempt in attempts:
            if attempt.uid not in jobs and attempt.ended_at is None and self._is_there(attempt):
                continue  # what we have is a little old; the next look will have it
            # by name, too: anybody can make a Job that says the leader owns it, but these names were taken
            names = job_names(attempt.job_id, attempt.number, attempt.job.pod_groups)[1:]
            beside = [job for job in others[attempt.uid] if job["metadata"]["name"] in names]
            all_pods = [pod for uid in (attempt.uid, *_uids(beside)) for pod in pods[uid]]
            if attempt.job.is_adopted:
                all_pods = numbered(jobs.get(attempt.uid) or adoption.last_form(attempt.job), all_pods)
            events = [event for uid in (attempt.uid, *_uids(beside), *_uids(all_pods)) for event in said.get(uid, ())]
            heard.append((attempt, events, all_pods))
            manifest = jobs.get(attempt.uid)
            looks.append(
                Look.at(attempt, manifest, all_pods, workers=workers[attempt.pk], others=beside, events=events)
            )
        self.keeper.keep(heard)
        bring_in_line(looks, self.follower)
        for look in looks:
            self.live.pop(look.attempt.uid, None)
            if look.attempt.ended_at is None and look.manifest is not None:
                self.live[look.attempt.uid] = (look.attempt, look.workers)

    def _is_there(self, attempt: Attempt) -> bool:
        """Asked anew: that something is missing in a list may be said of a list that was made before it was created."""
        try:
            return self.port.find(dispatch.reference(attempt)) is not None
        except ObjectDiffers:
            return False

    def store_nodes(self, seen: Observation) -> None:
        nodes = [asdict(node) for node in free_capacity(seen.nodes, seen.pods, tolerations=tolerations(self.name))]
        now = time.monotonic()
        if nodes == self.nodes and now - self.seen_at < LOOK_EVERY:
            return
        more_room = self.nodes != nodes
        self.nodes, self.seen_at = nodes, now
        Cluster.objects.filter(name=self.name).update(
            seen_at=timezone.now() - timedelta(seconds=seen.age), nodes=nodes, error=""
        )
        live.publish("cluster", None)
        if more_room:
            live.wake("jobs.tasks.dispatch_waiting")


def _uids(manifests: Sequence[Manifest]) -> list[str]:
    return [manifest["metadata"]["uid"] for manifest in manifests]
