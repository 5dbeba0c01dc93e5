"""Which worker a pod is, where its Job gives no index: each takes the place of one that has ended. Pure.

Asked anew with every look, so it depends on nothing but what the pods themselves say, and on no order in which they were met.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from jobs.cluster.adopted import workers_of
from jobs.cluster.fields import moment, number, part, parts, text
from jobs.cluster.manifests import INDEX_LABEL
from jobs.cluster.port import Manifest

_FIRST = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


def numbered(job: Manifest, pods: Sequence[Manifest]) -> list[Manifest]:
    """The pods of a Job, each with an index; those of an Indexed Job have theirs."""
    if all(_has_index(pod) for pod in pods):
        return list(pods)
    free_from = [_FIRST] * workers_of(job)  # by place: when its last pod ended
    found = []
    for pod in sorted(pods, key=lambda pod: (_created(pod), text(pod, "metadata", "name"))):
        # one that nobody has had yet, then the one that was free first: what ends later changes nothing of that, and no
        # clock of a machine is compared with the server's
        place = min(range(len(free_from)), key=lambda place: (free_from[place], place), default=0)
        if not free_from or free_from[place] == _NEVER:
            free_from.append(_FIRST)  # more than its Job asks for: somebody says that it owns this one
            place = len(free_from) - 1
        free_from[place] = _ended(pod)
        found.append(_with_index(pod, place))
    return found


def _has_index(pod: Manifest) -> bool:
    return bool(text(pod, "metadata", "labels", INDEX_LABEL) or text(pod, "metadata", "annotations", INDEX_LABEL))


def _with_index(pod: Manifest, index: int) -> Manifest:
    metadata = part(pod, "metadata")
    annotations = {**part(metadata, "annotations"), INDEX_LABEL: str(index)}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def _created(pod: Manifest) -> datetime:
    return moment(pod, "metadata", "creationTimestamp") or _FIRST


def _ended(pod: Manifest) -> datetime:
    """When its place was free again; a pod that is on its way out is replaced at once."""
    if killed_at := moment(pod, "metadata", "deletionTimestamp"):
        return killed_at - timedelta(seconds=number(pod, "metadata", "deletionGracePeriodSeconds") or 0)
    if text(pod, "status", "phase") not in ("Succeeded", "Failed"):
        return _NEVER
    ends = [moment(one, "state", "terminated", "finishedAt") for one in parts(pod, "status", "containerStatuses")]
    return max((end for end in ends if end), default=_created(pod))
