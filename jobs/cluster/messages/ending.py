"""Why the cluster took a pod away. Pure."""

from __future__ import annotations

from jobs.cluster.messages.words import Rule, Told, as_it_is, first, rule
from jobs.states import Reason

_WHAT = {
    "memory": "memory",
    "ephemeral-storage": "scratch space on its disk",
    "nodefs": "scratch space on its disk",
    "imagefs": "room for images",
    "inodes": "inodes on its disk",
    "nodefsInodes": "inodes on its disk",
    "pids": "process numbers",
    "MemoryPressure": "memory",
    "DiskPressure": "scratch space on its disk",
    "PIDPressure": "process numbers",
}

EVICTIONS: tuple[Rule, ...] = (
    # first what the job itself did: nobody else's machine was short of anything
    rule(
        r'Usage of EmptyDir volume "([^"]+)" exceeds the limit "([^"]+)"',
        Reason.OUT_OF_DISK,
        lambda match: f"It wrote more than {match[2].rstrip('.')} into {_place(match[1])}.",
    ),
    rule(
        r"ephemeral local storage usage exceeds the total limit of containers (\S+?)\.?(?:\s|$)",
        Reason.OUT_OF_DISK,
        "It wrote more than {1} of scratch space.",
    ),
    rule(
        r"Container (\S+) exceeded its local ephemeral storage limit \"([^\"]+)\"",
        Reason.OUT_OF_DISK,
        "It wrote more than {2} of scratch space.",
    ),
    rule(
        r"The node was low on resource: \[?([\w.-]+)",
        Reason.DISRUPTION,
        lambda match: f"Its machine ran short of {_WHAT.get(match[1].rstrip('.'), match[1].rstrip('.'))}.",
    ),
    rule(
        r"The node had condition: \[(\w+)\]",
        Reason.DISRUPTION,
        lambda match: f"Its machine ran short of {_WHAT.get(match[1], match[1])}.",
    ),
)


def _place(volume: str) -> str:
    return {"shm": "shared memory (/dev/shm)", "workspace": "/workspace"}.get(volume, f"the volume {volume}")


def of_eviction(message: str) -> Told:
    """The message of a pod with the reason Evicted."""
    return first(EVICTIONS, message) or as_it_is(Reason.DISRUPTION, "Its machine evicted it.", message)


# Reasons of the condition DisruptionTarget: what became of the worker, said after its name.
DISRUPTIONS = {
    "PreemptionByScheduler": (Reason.PREEMPTED, "was stopped for a job of higher priority"),
    "DeletionByTaintManager": (Reason.NODE_LOST, "lost its machine"),
    "DeletionByPodGC": (Reason.NODE_LOST, "lost its machine"),
    "EvictionByEvictionAPI": (Reason.DISRUPTION, "had to leave: its machine is being emptied for maintenance"),
    "TerminationByKubelet": (
        Reason.DISRUPTION,
        "had to leave: its machine was shutting down or ran short of something",
    ),
}
