"""Where a job can stand, and the moves between."""

from __future__ import annotations

from enum import StrEnum

from jobs.exceptions import WrongState


class JobStatus(StrEnum):
    """The six states. The words people read are models.STATUS_LABELS, which Django translates."""

    QUEUED = "queued"  # known to us alone; nothing on the cluster yet
    STARTING = "starting"  # handed to the cluster; not every pod runs yet
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in MOVES


# Asking for a cancel is not a move: it is an intent, kept in Job.cancel_requested_at.
MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset(
        {
            JobStatus.STARTING,
            JobStatus.FAILED,  # refused by the cluster for good, or its code could not be fetched
            JobStatus.CANCELLED,
        }
    ),
    JobStatus.STARTING: frozenset(
        {
            JobStatus.RUNNING,
            JobStatus.QUEUED,  # a new attempt: preempted, disrupted, retried or held
            JobStatus.SUCCEEDED,  # too quick for us to see it run
            JobStatus.FAILED,
            JobStatus.CANCELLED,
        }
    ),
    JobStatus.RUNNING: frozenset(
        {
            JobStatus.SUCCEEDED,
            JobStatus.FAILED,
            JobStatus.CANCELLED,
            JobStatus.QUEUED,  # a new attempt, as above
        }
    ),
}

FINAL = tuple(status for status in JobStatus if status not in MOVES)
ACTIVE = (JobStatus.STARTING, JobStatus.RUNNING)  # what holds capacity


class Reason(StrEnum):
    """Why a job stands where it stands: a closed list, each shown with a sentence."""

    # waiting
    FETCHING_CODE = "FetchingCode"
    PENDING_EVALUATION = "PendingEvaluation"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_USER_LIMIT = "WaitingForUserLimit"
    WAITING_BEHIND = "WaitingBehind"  # would delay the start of a larger job ahead
    WAITING_FOR_CLUSTER = "WaitingForCluster"  # no word from the cluster lately, so nothing is started there
    NEVER_FITS = "NeverFits"
    HELD = "Held"
    FORBIDDEN = "Forbidden"  # held: the cluster does not let its owner start it
    SECRET_GONE = "SecretGone"  # noqa: S105 - held: it names a secret that its namespace has no more
    VOLUME_GONE = "VolumeGone"  # held: it names a volume that its namespace is not offered any more
    OWNER_LEFT = "OwnerLeft"  # held: its owner has lost the right to run it, and a lead decides
    # on its way
    ADMITTED = "Admitted"
    SETTING_UP = "SettingUp"
    # on its way, and something is missing: the start time-out ends the wait
    QUOTA_EXCEEDED = "QuotaExceeded"  # of the namespace on the cluster, asked for each pod
    NOT_ALLOWED = "NotAllowed"  # its pods break a rule of the cluster
    CLUSTER_NOT_SET_UP = "ClusterNotSetUp"  # something that the portal's own manifests name is not there
    SECRET_MISSING = "SecretMissing"  # noqa: S105
    VOLUME_MISSING = "VolumeMissing"
    VOLUME_UNAVAILABLE = "VolumeUnavailable"  # it exists, and cannot be mounted now
    REGISTRY_UNAVAILABLE = "RegistryUnavailable"  # of images; what IMAGE_NOT_FOUND says stays until somebody changes it
    MACHINE_FAULT = "MachineFault"  # it has the pod and cannot make its container
    # how an attempt ended
    COMPLETED = "Completed"
    NON_ZERO_EXIT = "NonZeroExit"
    KILLED_BY_SIGNAL = "KilledBySignal"
    OUT_OF_MEMORY = "OutOfMemory"
    OUT_OF_DISK = "OutOfDisk"  # it wrote more scratch space or shared memory than it had asked for
    TIME_LIMIT = "TimeLimit"
    SETUP_FAILED = "SetupFailed"
    COMMAND_NOT_FOUND = "CommandNotFound"
    CODE_NOT_FETCHED = "CodeNotFetched"
    REFUSED_BY_CLUSTER = "RefusedByCluster"
    IMAGE_NOT_FOUND = "ImageNotFound"
    START_TIMEOUT = "StartTimeout"
    STOPPED = "Stopped"
    PREEMPTED = "Preempted"
    DISRUPTION = "Disruption"
    NODE_LOST = "NodeLost"
    OUTCOME_UNKNOWN = "OutcomeUnknown"
    RETRIED = "Retried"


# Held, and not by a wish: the sentence says more than "held by", and stays until somebody releases it.
HELD_FOR_CAUSE = frozenset({Reason.FORBIDDEN, Reason.SECRET_GONE, Reason.VOLUME_GONE, Reason.OWNER_LEFT})

# Ends that are the platform's doing: a new attempt, not charged to the user's retries.
NOT_CHARGED = frozenset({Reason.PREEMPTED, Reason.DISRUPTION, Reason.NODE_LOST, Reason.START_TIMEOUT, Reason.HELD})


# What keeps a start from going on until something changes; the start time-out ends such a wait. Of these the first stay what
# they are until a person changes the job or its namespace.
LASTING = frozenset({Reason.IMAGE_NOT_FOUND, Reason.NOT_ALLOWED, Reason.SECRET_MISSING, Reason.VOLUME_MISSING})
HINDERED = LASTING | {
    Reason.QUOTA_EXCEEDED,
    Reason.CLUSTER_NOT_SET_UP,
    Reason.VOLUME_UNAVAILABLE,
    Reason.REGISTRY_UNAVAILABLE,
    Reason.MACHINE_FAULT,
    Reason.WAITING_FOR_CAPACITY,
}


def check_move(old: str, new: str) -> None:
    """Raise WrongState unless a job may go from `old` to `new`."""
    if JobStatus(new) not in MOVES.get(JobStatus(old), frozenset()):
        raise WrongState(f"A {old} job cannot become {new}.")
