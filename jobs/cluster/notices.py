"""That somebody else than the portal is ending a pod: a drain, an eviction, the scheduler. Pure.

The pod itself is told by the kubelet, and the rest of its gang by the Job's controller, a second later: what is read here is for
people. Who lost its machine was told nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.cluster.fields import condition, moment, number
from jobs.cluster.pods import PodView, verdict
from jobs.states import Reason

TOLD = "lastTransitionTime"


@dataclass(frozen=True, slots=True)
class Notice:
    """What was told to which worker."""

    reason: Reason
    text: str
    told_at: datetime
    deadline: datetime | None  # None: its grace is over


def notice_of(pods: Sequence[PodView]) -> Notice | None:
    """Of the one that was told first."""
    told = [
        (at, pod)
        for pod in pods
        if pod.is_disrupted and not pod.is_lost and (at := moment(condition(pod.pod, "DisruptionTarget"), TOLD))
    ]
    if not told:
        return None
    at, pod = min(told, key=lambda one: one[0])
    found = verdict(pod)
    if found.reason == Reason.NODE_LOST:
        return None
    runs = bool(number(pod.pod, "metadata", "deletionGracePeriodSeconds")) and not pod.is_terminal
    return Notice(found.reason, found.text, at, moment(pod.pod, "metadata", "deletionTimestamp") if runs else None)
