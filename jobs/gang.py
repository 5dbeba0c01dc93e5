"""Which pods a job is made of: its roles, the leader's first. Pure.

Most launchers need workers only. A TensorFlow parameter server has a chief and parameter servers beside them, MPI a launcher:
then the leader's end decides, since the others never end by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobs.spec import Resources

WORKER, CHIEF, PARAMETER_SERVER, LAUNCHER = "worker", "chief", "ps", "launcher"
LARGEST_LAUNCHER = (2000, 4 * 2**30)  # thousandths of a CPU and bytes: it starts programs and passes their lines on
# in words, one and many
WORDS = {
    WORKER: ("worker", "workers"),
    CHIEF: ("chief", "chiefs"),
    PARAMETER_SERVER: ("parameter server", "parameter servers"),
    LAUNCHER: ("launcher", "launchers"),
}


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The pods of one role: what each gets, and how many there are."""

    role: str
    count: int
    gpus: int
    cpu_millis: int
    memory_bytes: int

    @property
    def words(self) -> str:
        return WORDS[self.role][self.count != 1]


def pod_groups(launcher: str, resources: Resources) -> tuple[PodGroup, ...]:
    """What a job of this launcher and size is made of. Only workers get GPUs."""
    workers = PodGroup(WORKER, resources.workers, resources.gpus, resources.cpu_millis, resources.memory_bytes)
    if launcher == "mpi":
        cpus, memory = LARGEST_LAUNCHER
        return PodGroup(LAUNCHER, 1, 0, min(workers.cpu_millis, cpus), min(workers.memory_bytes, memory)), workers
    if launcher == "tensorflow" and resources.parameter_servers:
        servers = resources.parameter_servers
        return (
            PodGroup(CHIEF, 1, 0, workers.cpu_millis, workers.memory_bytes),
            PodGroup(PARAMETER_SERVER, servers, 0, workers.cpu_millis, workers.memory_bytes),
            workers,
        )
    return (workers,)


def places(groups: tuple[PodGroup, ...]) -> list[tuple[str, int]]:
    """Role and index of every pod, in the order in which nodes are named for them."""
    return [(group.role, index) for group in groups for index in range(group.count)]


def first_ranks(groups: tuple[PodGroup, ...]) -> dict[str, int]:
    """By role, the rank of its first pod, so that no two pods share one: the chief's, the workers', then the others'."""
    found, first = {}, 0
    for group in sorted(groups, key=lambda group: (group.role != CHIEF, group.role != WORKER)):
        found[group.role] = first
        first += group.count
    return found


def rank_of_lines(groups: tuple[PodGroup, ...], *, role: str, index: int) -> int:
    """The rank whose numbers a pod's lines tell. An MPI launcher passes on what its ranks print, the first one above all."""
    return 0 if role == LAUNCHER else first_ranks(groups).get(role, 0) + index


def object_name(job_id: str, attempt: int) -> str:
    """Of what all pods of an attempt share; one name per attempt, never used again."""
    return f"j-{job_id}-{attempt}"


def job_name(shared: str, role: str, groups: tuple[PodGroup, ...]) -> str:
    """The name of a role's Job: where there is one role only, the shared name itself."""
    return shared if len(groups) == 1 else f"{shared}-{role}"


def job_names(job_id: str, attempt: int, groups: tuple[PodGroup, ...]) -> list[str]:
    """Of all Jobs of an attempt, the leader's first."""
    return [job_name(object_name(job_id, attempt), group.role, groups) for group in groups]


def leader_name(job_id: str, attempt: int, groups: tuple[PodGroup, ...]) -> str:
    return job_names(job_id, attempt, groups)[0]
