"""The cluster as it is, brought into the database: nothing is remembered, everything is looked at again."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from threading import Event
from typing import Any

from django.db import OperationalError, connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from jobs import adoption, dispatch, failures, faults, interruptions, lifecycle, live
from jobs.cluster.events import by_object
from jobs.cluster.observed import Observed, WorkerState, free_capacity, observe_attempt
from jobs.cluster.places import numbered
from jobs.cluster.port import Cluster as Port
from jobs.cluster.port import Manifest, Observation
from jobs.cluster.registry import tolerations
from jobs.cluster_events import EventKeeper
from jobs.exceptions import ClusterUnavailable, ObjectDiffers
from jobs.gang import job_names
from jobs.logs.lines import LogFollower, Sink
from jobs.models import Attempt, Cluster, Job, Worker
from jobs.states import JobStatus, Reason

LOOK_EVERY = 5.0  # seconds; so that the age on the page stays small
LINES_EVERY = 0.2
LINES_FOR = 0.05  # seconds at a time, while other things may have changed
REPAIRED_AT_ONCE = 50
RETRY_AFTER = 2.0
LOGS_WAITED_FOR = timedelta(minutes=1)
SETTLE_TRIES = 5  # people write a job now and then, not five times while it ends
logger = logging.getLogger(__name__)


class Mirror:
    """Keeps the rows of one cluster's attempts equal to what is there."""

    def __init__(self, name: str, port: Port, *, sink: Sink | None = None) -> None:
        self.name = name
        self.port = port
        self.follower = LogFollower(port, sink)
        self.seen_at = 0.0
        self.repaired_at = 0.0  # monotonic: when every attempt was looked at; 0 after an error, which may lose changes
        self.repaired_up_to = 0  # the last attempt of the round that is under way
        self.round_began = 0.0
        self.live: OrderedDict[str, tuple[Attempt, list[Worker]]] = OrderedDict()  # by UID: whose lines are followed
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
        changed = self.port.changes(LINES_EVERY)
        now = time.monotonic()
        if changed is None or not self.repaired_at:
            self.look()
            return
        if changed:
            self.look_at(changed)
        if now - self.repaired_at >= self.port.repair_every:
            self.repair_some()
        if now - self.seen_at >= LOOK_EVERY:
            self.look_at_what_moves()
        self._follow()

    def _follow(self) -> None:
        """New lines of whoever runs; of very many at once only some, so that no change waits long behind lines."""
        end = time.monotonic() + LINES_FOR
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
        self._bring_in_line(attempts, seen)
        adoption.look(self.name, self.port, seen.jobs)
        self.repaired_at = began

    def repair_some(self) -> None:
        """The next few of all attempts: each comes once in a round, and no change waits until all of them were looked at."""
        if not self.repaired_up_to:
            self.round_began = time.monotonic()
        some = self._attempts().filter(pk__gt=self.repaired_up_to).exclude(uid="").order_by("pk")
        attempts = list(some[:REPAIRED_AT_ONCE])
        self._bring_in_line(attempts, self.port.observe([attempt.uid for attempt in attempts]))
        if len(attempts) < REPAIRED_AT_ONCE:
            self.repaired_up_to, self.repaired_at = 0, self.round_began
        else:
            self.repaired_up_to = attempts[-1].pk

    def look_at_what_moves(self) -> None:
        """The nodes, and the attempts that something is still to be done for; those that simply run are told of."""
        simply_runs = Q(job__status=JobStatus.RUNNING, ended_at=None, stop_code="")
        attempts = list(self._attempts().exclude(uid="").exclude(simply_runs))
        seen = self.port.observe()
        self.store_nodes(seen)
        self._bring_in_line(attempts, seen)
        adoption.look(self.name, self.port, seen.jobs)

    def look_at(self, uids: Collection[str]) -> None:
        """Only the attempts whose objects changed: with thousands on a cluster a full look for each change would be too slow."""
        attempts = list(self._attempts().filter(uid__in=uids))
        seen = self.port.observe(uids)
        self._bring_in_line(attempts, seen)
        adoption.look(self.name, self.port, seen.jobs, asked=uids)

    def _attempts(self) -> QuerySet[Attempt]:
        return (
            Attempt.objects.filter(cluster=self.name, deleted_at=None)
            .select_related("job__namespace", "job__cancel_requested_by", "job__owner")
            .prefetch_related("workers")
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
            looks.append(Look.at(attempt, jobs.get(attempt.uid), all_pods, others=beside, events=events))
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


@dataclass(frozen=True, slots=True)
class Look:
    """One attempt beside what its objects say."""

    attempt: Attempt
    manifest: Manifest | None  # of its leader; None: it is gone
    observed: Observed
    workers: list[Worker]  # as they are now
    changed: list[Worker]  # those that the database has otherwise

    @classmethod
    def at(
        cls,
        attempt: Attempt,
        manifest: Manifest | None,
        pods: Sequence[Manifest],
        *,
        others: Sequence[Manifest],
        events: Sequence[Manifest] = (),
    ) -> Look:
        leader = attempt.job.pod_groups[0]
        observed = observe_attempt(
            # gone: then only we know how many it had
            manifest or adoption.last_form(attempt.job) or {"spec": {"parallelism": leader.count}},
            pods,
            others=others,
            role=leader.role,
            deleted=manifest is None,
            events=events,
            stopped=attempt.stop_requested_at is not None,
            adopted=attempt.job.is_adopted,
        )
        workers = list(attempt.workers.all())
        return cls(attempt, manifest, observed, workers, update_workers(workers, observed.workers))


def bring_in_line(looks: Sequence[Look], follower: LogFollower) -> None:
    """Everything that these attempts' objects say, written once."""
    store_workers([worker for look in looks for worker in look.changed])
    faults.point("watch.pods_seen")
    lifecycle.touch([look.attempt.job for look in looks if conclude_or_show(look, follower)])


def conclude_or_show(look: Look, follower: LogFollower) -> bool:
    """What follows for the attempt and its job, the most final question first.

    True if only its workers have changed, which are stored already: pages are to be told.
    """
    attempt, observed, workers = look.attempt, look.observed, look.workers
    if observed.notice is not None:
        interruptions.tell(attempt, observed.notice)
    is_read = look.manifest is None or follower.follow(attempt, workers)
    if observed.ended or look.manifest is None:
        follower.finish(workers)
    only_workers = False
    if attempt.ended_at is None:
        if observed.ended and not is_read and attempt.stop_code == Reason.STOPPED and not waited_for_logs(workers):
            return False  # its object goes as it is settled, and the last lines with it
        if observed.ended:
            settle(attempt, observed)
        elif look.manifest is None and attempt.job.is_adopted and not observed.pods_gone:
            return False  # its maker deleted it, and its pods are in their grace: they tell what became of it
        elif look.manifest is None:
            settle(attempt, Observed.vanished())
        elif observed.decided:
            conclude(attempt, observed)
        else:
            only_workers = not show_progress(attempt.job, attempt, observed) and bool(look.changed)
    if attempt.ended_at is not None and observed.ended and (is_read or waited_for_logs(workers)):
        # logs were read to their end above, after the pods had ended: now the objects may go
        dispatch.delete_objects(attempt)
    return only_workers


def waited_for_logs(workers: Sequence[Worker]) -> bool:
    """A machine that cannot be asked for the last lines keeps an object for a while, not for ever."""
    ends = [worker.finished_at for worker in workers if worker.finished_at is not None]
    return not ends or timezone.now() - max(ends) > LOGS_WAITED_FOR


def settle(attempt: Attempt, observed: Observed) -> None:
    failures.note_cause(attempt, observed)
    faults.point("settle.before")
    for _try in range(SETTLE_TRIES):
        if attempt.stop_code == Reason.STOPPED and attempt.deleted_at is None and not dispatch.delete_objects(attempt):
            return  # "cancelled" is written only once the object is gone
        if lifecycle.settle(attempt.job, attempt, observed):
            break
        # decided anew at once, on the rows as they are now: an object that is gone will not be seen a second time
        logger.info("%s was written by another process; looked at again", attempt.job_id)
        attempt.refresh_from_db()
    faults.point("settle.after")


def conclude(attempt: Attempt, observed: Observed) -> None:
    """The leader has ended, or a role has failed, and the rest runs on: what is known is stored, then the rest is ended.

    Quota and another attempt wait until its pods are gone; the news of a success does not.
    """
    for _try in range(SETTLE_TRIES):
        if observed.status != JobStatus.SUCCEEDED or lifecycle.conclude(attempt.job, attempt, observed):
            break
        attempt.refresh_from_db()
    faults.point("conclude.before_end")
    dispatch.end_the_rest(attempt)


def show_progress(job: Job, attempt: Attempt, observed: Observed) -> bool:
    """Whether the job itself had anything new to say, or has gone on without this attempt."""
    if job.attempt_number != attempt.number or job.is_final:
        return True
    if observed.status == JobStatus.RUNNING and job.status == JobStatus.STARTING:
        faults.point("watch.running_seen")
        return lifecycle.mark_running(job, attempt, reason=observed.text)
    if job.status == JobStatus.STARTING and observed.text and attempt.released_at:
        reason = observed.reason or Reason.SETTING_UP
        if (job.reason_code, job.reason) != (reason, observed.text):
            return lifecycle.explain(job, reason, observed.text)
    return False


WORKER_FIELDS = "node pod_name pod_uid phase exit_code signal reason message started_at finished_at".split()


def store_workers(workers: Sequence[Worker]) -> None:
    """All in one statement: a bulk_update of Django spends several times as long on thinking of it."""
    if not workers:
        return
    fields = [field for field in Worker._meta.concrete_fields if field.name in ("id", *WORKER_FIELDS)]
    lists = ", ".join(f"%s::{field.db_type(connection)}[]" for field in fields)
    names = ", ".join(f'"{field.column}"' for field in fields)
    into = ", ".join(f'"{field.column}" = new."{field.column}"' for field in fields if field.name != "id")
    table = Worker._meta.db_table
    values = [[getattr(worker, field.attname) for worker in workers] for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{table}" SET {into} FROM unnest({lists}) AS new ({names}) WHERE "{table}"."id" = new."id"',  # noqa: S608
            values,
        )


def update_workers(workers: Sequence[Worker], states: Sequence[WorkerState]) -> list[Worker]:
    """Copy what was observed onto the rows; those that changed."""
    rows = {(worker.role, worker.index): worker for worker in workers}
    changed = []
    for state in {
        (state.role, state.index): state for state in states
    }.values():  # the last of those in one place counts
        worker = rows.get((state.role, state.index))
        if worker is None:
            continue
        before = [getattr(worker, name) for name in WORKER_FIELDS]
        for name in WORKER_FIELDS:
            value = getattr(state, name)
            if name == "node" and not value:
                continue
            setattr(worker, name, value)
        if before != [getattr(worker, name) for name in WORKER_FIELDS]:
            changed.append(worker)
    return changed
