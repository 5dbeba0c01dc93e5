"""What a cluster can do for us, whatever it is made of.

Everything speaks Kubernetes' shapes: manifests go in as plain dicts, Jobs, Pods and Nodes come out as plain dicts, so that
`manifests` and `observed` serve every cluster and "show manifest" is true everywhere. Errors are those of jobs.exceptions:
ClusterUnavailable (look again), ClusterForbids (403), ClusterRefuses (400, 422), ObjectDiffers, ObjectGone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol, TypeAlias

Manifest = dict[str, Any]

# Where the stored part of each container's log ends, in words of its cluster: what RawLine.position said last.
LogPositions: TypeAlias = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks: the user whose rights count. None in a call means the portal itself."""

    username: str
    groups: tuple[str, ...] = ()  # names in the directory
    source: str = "local"  # where the account comes from: local, ldap, oidc


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One attempt's leader Job on a cluster; `uid` is what we stored, "" before it is known."""

    namespace: str  # the Kubernetes name
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Objects:
    """Everything one attempt needs on the cluster, in order: the leader Job first, suspended."""

    jobs: tuple[Manifest, ...]
    service: Manifest | None
    config_map: Manifest | None
    secret: Manifest | None  # holds the attempt token, the signed code URL and typed secrets: never shown, never logged

    @property
    def leader(self) -> Manifest:
        return self.jobs[0]


@dataclass(frozen=True, slots=True)
class Observation:
    """A full look at the cluster: raw Job, Pod and Node dicts in Kubernetes' shapes; `age` seconds old at most."""

    jobs: Sequence[Manifest]
    pods: Sequence[Manifest]
    nodes: Sequence[Manifest]
    events: Sequence[Manifest] = field(default_factory=tuple)
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class RawLine:
    """One line a worker wrote. `number` counts from 1 per worker without gaps; `time` is epoch seconds.

    `overwritten` says that the line ended in a carriage return: the next one of this worker takes its place on a screen.
    """

    number: int
    time: float
    text: str
    overwritten: bool = False
    container: str = "main"
    position: tuple[float, int] | None = (
        None  # what to give to `logs` to go on behind this line; None: its number is enough
    )


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file a job left in its run's folder. `path` is relative: `out/…`, `ckpt/…` or `tb/…`."""

    path: str
    size: int  # bytes
    modified: float  # epoch seconds


class Terminal(Protocol):
    """A shell in a worker's `main` container, with a terminal; spoken to asynchronously."""

    ended: str  # once `read` has said so: why, in words of the cluster; "" where the shell ended as it was told to

    async def read(self) -> bytes:
        """What it wrote next; nothing more is read from it meanwhile. Empty once it has ended."""

    async def write(self, data: bytes) -> None:
        """Returns when it was taken, which a program that reads nothing does not do."""

    async def resize(self, columns: int, rows: int) -> None:
        """Tell the program, which redraws its screen."""

    async def close(self) -> None:
        """End the shell and what was started from it, as far as this person may."""


class Cluster(Protocol):
    """One place where jobs run."""

    name: str
    repair_every: float  # seconds between two looks at everything: what `changes` did not tell is found by these

    def ensure_namespace(self, objects: Sequence[Manifest]) -> Sequence[str]:
        """Bring the Namespace, which is the first, and what belongs into it in line; a sentence for each thing that was not.

        Raise ObjectDiffers where the cluster has a namespace of that name which is not ours.
        """

    def create(self, objects: Objects, *, person: Person | None) -> str:
        """Create the attempt's objects, the Job suspended, and return the leader's UID.

        Create or fetch-and-compare: safe to repeat after a crash anywhere. Raise ObjectDiffers if the name is taken by
        something else, ObjectGone if it was used and deleted.
        """

    def release(self, ref: ObjectRef, *, job_id: str = "", time_limit: int = 0) -> None:
        """Let the suspended Job start: a compare-and-set, and a no-op when it is released already.

        One that somebody else made is labelled with `job_id` by that, and gets the `time_limit` where it has none.

        Also the repair for a release that crashed half way: calling it again starts what has not been started.
        """

    def suspend(self, ref: ObjectRef) -> None:
        """Begin the stop: SIGTERM now, SIGKILL after the Job's own grace. A no-op when it is gone or ending."""

    def kill(self, ref: ObjectRef, *, person: Person | None) -> None:
        """Stop now: SIGKILL within about a second, whatever the grace."""

    def delete(self, ref: ObjectRef, *, person: Person | None, dry_run: bool = False) -> None:
        """Remove the objects; the UID is a precondition. Gone already is fine. `dry_run` only asks whether one may.

        Pods that live get SIGTERM and their grace first; the Job is listed, with a deletionTimestamp, until they are gone.
        """

    def remove_files(self, job_id: str, attempts: Sequence[ObjectRef]) -> None:
        """Remove what a job that is over left: its run's folder and the records of its attempts, whose names stay taken.

        All its attempts, their objects gone. Safe to repeat. Raise ObjectDiffers, and remove nothing, where a name has
        something that does not bear the UID.
        """

    def files(self, namespace: str, job_id: str, *, limit: int) -> Sequence[RunFile]:
        """What a job left so far, of all its attempts, at most `limit` files; nothing where there is nothing."""

    def open_file(self, namespace: str, job_id: str, path: str) -> BinaryIO:
        """One of them, seekable. Raise FileNotFoundError for anything that is not a regular file inside its folder."""

    def find(self, ref: ObjectRef) -> Manifest | None:
        """The Job of that name as it is now, whoever made it; None where there is none."""

    def observe(self, jobs: Collection[str] | None = None) -> Observation:
        """Everything, in one consistent look; or, of clusters that can tell them apart, at least the Jobs of these UIDs."""

    def changes(self, timeout: float) -> Collection[str] | None:
        """Wait until something may have changed since this was asked last, at most `timeout` seconds: the UIDs of its Jobs.

        None: anything may have, so observe everything. New log lines are not announced; who follows a log asks for it.
        """

    def look_away(self) -> None:
        """Another process watches now: stop asking the cluster for changes until `changes` is called again."""

    def logs(
        self, ref: ObjectRef, worker: str, *, after: int, limit: int, positions: LogPositions
    ) -> Iterator[RawLine]:
        """Lines of `<role>-<index>` with a number above `after`, at most `limit`, without waiting for more.

        `positions` is what was stored with the line of number `after`, by container.

        Raise ObjectGone where the log went with its object; a pod that has not begun has no lines.
        """

    async def shell(
        self, ref: ObjectRef, worker: str, *, pod: str, person: Person, container: str = "main"
    ) -> Terminal:
        """A shell in that container of a worker that runs, as the person: bash where there is one, else sh.

        `pod` is its pod's name. Raise ClusterForbids where they may not, ObjectGone, ClusterRefuses or ClusterUnavailable.
        """
