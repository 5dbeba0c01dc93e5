"""The rows of a job's life. Django looks for models here, so this package alone says again what its modules have."""

from jobs.models.adoption import Adoption
from jobs.models.attempt import Attempt, UsageInterval, Worker
from jobs.models.catalogue import BoundUpload, Cluster, ClusterNamespace, CodeArchive, PriorityClass, Runtime
from jobs.models.events import ClusterEvent
from jobs.models.feed import JobFeed, LogBlock, LogChunk
from jobs.models.job import ADOPTED, ID_ALPHABET, STATUS_LABELS, Job, JobEvent, JobSecret, new_job_id
from jobs.models.personal import Draft, JobPin, SavedView
from jobs.models.shared import NamespaceSecret, NamespaceVolume

__all__ = [
    "ADOPTED",
    "ID_ALPHABET",
    "STATUS_LABELS",
    "Adoption",
    "Attempt",
    "BoundUpload",
    "Cluster",
    "ClusterEvent",
    "ClusterNamespace",
    "CodeArchive",
    "Draft",
    "Job",
    "JobEvent",
    "JobFeed",
    "JobPin",
    "JobSecret",
    "LogBlock",
    "LogChunk",
    "NamespaceSecret",
    "NamespaceVolume",
    "PriorityClass",
    "Runtime",
    "SavedView",
    "UsageInterval",
    "Worker",
    "new_job_id",
]
