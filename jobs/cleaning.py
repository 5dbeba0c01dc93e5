"""Nothing outlives its job, nothing innocent is deleted: what ended attempts left on a cluster, and files past their keeping.

Only rows of the database are followed, never what happens to lie on a cluster: with an empty database nothing is removed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from jobs import dispatch, lifecycle
from jobs.cluster.manifests import is_same
from jobs.cluster.port import Cluster, Manifest, ObjectRef
from jobs.cluster.registry import connect
from jobs.exceptions import ClusterForbids, ClusterRefuses, ClusterUnavailable, ObjectDiffers
from jobs.models import ADOPTED, Attempt, Job
from jobs.states import FINAL, Reason

PER_HOUR = 100  # jobs whose files may go: a wrong clock or setting is noticed before much is lost
LEFT_PER_PASS = 100  # the same for objects of attempts that are over
LEFT_FOR = timedelta(minutes=10)  # the watcher removes objects itself; what is older it has lost sight of
logger = logging.getLogger(__name__)


def remove_old_files() -> int:
    """Remove the files of jobs past their keeping, the oldest first; how many jobs lost theirs."""
    now = timezone.now()
    due = _past_keeping(now)
    room = PER_HOUR - Job.objects.filter(cleaned_at__gte=now - timedelta(hours=1)).count()
    if (count := due.count()) > room:
        logger.error(
            "The files of %d jobs are due for removal, more than the %d an hour that are allowed; the sweep stops after %d."
            " If that is too many, look at the clock and at TRAINHALL_KEEP_FILES.",
            count,
            PER_HOUR,
            max(0, room),
        )
    removed = 0
    # those that cannot be removed now stay the oldest: the next ones must not wait for them for ever
    for job in due.prefetch_related("attempts").iterator(chunk_size=100):
        if removed >= room:
            break
        removed += _remove_files(job)
    return removed


def _past_keeping(now: datetime) -> QuerySet[Job]:
    """Jobs that are over, with every object seen gone."""
    left = Attempt.objects.filter(job=OuterRef("pk"), deleted_at=None)
    past = now - timedelta(days=settings.TRAINHALL_KEEP_FILES)
    return (
        Job.objects.filter(
            ~Exists(left), status__in=FINAL, cleaned_at=None, finished_at__lte=past, attempt_number__gt=0
        )
        .exclude(origin=ADOPTED)
        .order_by("finished_at")
    )


def _remove_files(job: Job) -> bool:
    try:
        connect(job.cluster_id).remove_files(job.pk, [dispatch.reference(attempt) for attempt in job.attempts.all()])
    except ObjectDiffers as error:
        logger.error("The files of %s stay: %s", job.pk, error)
        return False
    except (ClusterUnavailable, ClusterForbids, ClusterRefuses) as error:
        logger.warning("The files of %s are not removed yet: %s", job.pk, error)
        return False
    while not lifecycle.mark_cleaned(job, days=settings.TRAINHALL_KEEP_FILES):
        job.refresh_from_db()  # a person wrote a note meanwhile
        if job.cleaned_at:
            return False
    return True


def remove_left_objects() -> int:
    """Delete objects of attempts that ended a while ago and were never seen gone; how many are gone now."""
    left = Attempt.objects.filter(deleted_at=None, ended_at__lte=timezone.now() - LEFT_FOR).order_by("ended_at")
    left = left.exclude(Q(job__origin=ADOPTED) & ~Q(stop_code=Reason.STOPPED))  # those objects are their makers'
    if left.count() > LEFT_PER_PASS:
        logger.error("%d attempts that are over left objects; %d are looked at now.", left.count(), LEFT_PER_PASS)
    found: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in left.select_related("job__namespace", "job__owner", "job__code")[:LEFT_PER_PASS]:
        found[attempt.cluster_id].append(attempt)
    gone = 0
    for cluster, attempts in found.items():
        try:
            gone += _remove_objects(connect(cluster), attempts)
        except ClusterUnavailable as error:
            logger.warning("What %d attempts left on %s is not removed yet: %s", len(attempts), cluster, error)
    return gone


def _remove_objects(port: Cluster, attempts: Sequence[Attempt]) -> int:
    """One look at the cluster for all of them, and one more to see whether what was deleted is gone."""
    seen = port.observe().jobs
    ours = {attempt.pk: _uid_of_ours(seen, attempt) for attempt in attempts}
    for attempt in attempts:
        if uid := ours[attempt.pk]:
            try:
                port.delete(ObjectRef(attempt.kubernetes_namespace, attempt.object_name, uid), person=None)
            except ClusterForbids as error:
                logger.warning("%s is not removed yet: %s", attempt, error)
    if any(ours.values()):
        seen = port.observe().jobs
    # what is still there has pods in their grace; the next pass looks again
    gone = [attempt for attempt in attempts if not ours[attempt.pk] or not _uid_of_ours(seen, attempt)]
    for attempt in gone:
        if ours[attempt.pk]:
            logger.warning("%s had left its object behind; it is removed.", attempt)
    ids = [attempt.pk for attempt in gone]
    return Attempt.objects.filter(pk__in=ids, deleted_at=None).update(deleted_at=timezone.now())


def _uid_of_ours(seen: Sequence[Manifest], attempt: Attempt) -> str:
    """The UID of the listed object that is this attempt's: by the UID we stored, else by all that we would have created."""
    for found in seen:
        metadata: Manifest = found["metadata"]
        if (metadata["namespace"], metadata["name"]) != (attempt.kubernetes_namespace, attempt.object_name):
            continue
        if attempt.uid:
            return attempt.uid if metadata["uid"] == attempt.uid else ""
        if is_same(found, dispatch.objects_of(attempt, with_secrets=False).leader):
            return str(metadata["uid"])
        logger.error("%s is the name of an object that is not ours; it stays.", attempt)
    return ""
