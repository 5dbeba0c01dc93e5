"""The typed form of a job document (DESIGN 12): what a user asked for, checked and with the runtime's defaults filled in."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Resources:
    """What each worker gets, and what a job has beside its workers."""

    workers: int = 1
    gpus: int = 0
    gpu_type: str = ""  # "" means any
    cpu_millis: int = 500
    memory_bytes: int = 512 * 2**20
    shm_bytes: int = 0
    parameter_servers: int = 0  # of the launcher tensorflow; 0 means none, and no chief

    @property
    def total_gpus(self) -> int:
        return self.workers * self.gpus


@dataclass(frozen=True, slots=True)
class CodeSource:
    """Where the code comes from; at most one of the three."""

    files: dict[str, str] = field(default_factory=dict)
    upload: str = ""  # sha256 of an archive sent before
    git: str = ""
    ref: str = ""

    @property
    def kind(self) -> str:
        return "files" if self.files else "upload" if self.upload else "git" if self.git else "none"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A secret environment variable. A typed value is never here: it lies encrypted beside the job."""

    name: str
    from_secret: str = ""  # a secret of the namespace; "" means typed by the user
    key: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """A claim of the namespace. What a document leaves open is filled in by what is offered, before anything is stored."""

    name: str
    path: str  # "" means where it is offered
    read_only: bool | None = True  # None means as it is offered


@dataclass(frozen=True, slots=True)
class ChartGoal:
    value: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Charts:
    """How a job's charts stand where nobody has a layout of their own: by the name of a metric, or a glob of names."""

    pin: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    log_y: tuple[str, ...] = ()
    size: dict[str, str] = field(default_factory=dict)
    best: dict[str, str] = field(default_factory=dict)  # min or max
    goals: dict[str, ChartGoal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Everything needed to run the job; lengths of time in seconds, sizes in bytes, CPU in thousandths."""

    namespace: str
    name: str
    runtime: str
    image: str
    command: str  # as written, {{parameter}} not yet filled in
    code: CodeSource = field(default_factory=CodeSource)
    parameters: dict[str, str | int | float | bool] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[SecretRef, ...] = ()
    resources: Resources = field(default_factory=Resources)
    launcher: str = "plain"
    volumes: tuple[Volume, ...] = ()
    priority: str = "normal"
    preemptible: bool = True
    time_limit: int = 24 * 3600
    retries: int = 0
    stop_grace: int = 30
    notify: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    charts: Charts = field(default_factory=Charts)
    cluster: str = ""  # "" means where the namespace's jobs go


def spec_from_dict(data: dict) -> JobSpec:
    """Read back what `spec_to_dict` wrote; raises KeyError or TypeError on anything else."""
    return JobSpec(
        **{
            **data,
            "code": CodeSource(**data["code"]),
            "secrets": tuple(SecretRef(**secret) for secret in data["secrets"]),
            "resources": Resources(**data["resources"]),
            "volumes": tuple(Volume(**volume) for volume in data["volumes"]),
            "notify": tuple(data["notify"]),
            "tags": tuple(data["tags"]),
            "charts": _charts_from_dict(data.get("charts") or {}),  # jobs from before there were any
        }
    )


def _charts_from_dict(data: dict) -> Charts:
    lists = {name: tuple(data.get(name, ())) for name in ("pin", "order", "hide", "log_y")}
    goals = {key: ChartGoal(**goal) for key, goal in data.get("goals", {}).items()}
    return Charts(**lists, size=data.get("size", {}), best=data.get("best", {}), goals=goals)


def spec_to_dict(spec: JobSpec) -> dict:
    return asdict(spec)
