"""What can go wrong with a job, in words a person can act on, each with its HTTP status and code."""

from __future__ import annotations

from typing import Any


class JobError(Exception):
    """An error whose message is meant for the person who caused it."""

    http_status = 400
    code = "invalid"

    def __init__(self, message: str, *, fields: dict[str, list[str]] | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields or {}
        self.details = details


class SpecError(JobError):
    """The job document is wrong; `fields` names each wrong place by its dotted path and says the fix."""

    http_status = 422
    code = "invalid_spec"


class NeverFits(SpecError):
    """No node could ever run this."""

    code = "never_fits"


class WrongState(JobError):
    http_status = 409
    code = "wrong_state"


class IdempotencyConflict(JobError):
    """The same Idempotency-Key came with another document."""

    http_status = 409
    code = "idempotency_conflict"


class NotAllowed(JobError):
    """The caller can see it, but the role is too low."""

    http_status = 403
    code = "not_allowed"


class UploadError(JobError):
    code = "bad_upload"


class CodeNotFetched(JobError):
    """Code from a git URL could not be had; `permanent` says whether another try can help."""

    code = "code_not_fetched"

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent


class SecretGone(JobError):
    """A job names a secret that its namespace has no more: it is held, and the sentence says which."""


class VolumeGone(JobError):
    """A job names a volume that its namespace is not offered any more: it is held, and the sentence says which."""


class ClusterError(JobError):
    """The cluster answered with an error."""

    http_status = 503
    code = "cluster_error"


class ClusterUnavailable(ClusterError):
    """The cluster did not answer, or asked to come back later: look again, nothing is decided."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotInLine(ClusterUnavailable):
    """A namespace there is not as it must be before anything may start in it: looked at again, like a cluster that is away."""


class ClusterForbids(ClusterError):
    """A right is missing (403): the job is held and the right is named."""

    http_status = 403


class ClusterRefuses(ClusterError):
    """The objects are wrong for good (400, 422): the attempt fails with the message."""


class ObjectDiffers(ClusterError):
    """An object of that name exists and is not what we sent."""


class ObjectGone(ClusterError):
    """There is no such object, or its name has been used up."""
