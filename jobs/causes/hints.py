"""Numbers of a job that its cause speaks of, and the change to try next where one is obvious (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.causes.scene import Scene, WorkerEnd

MIB, GIB = 2**20, 2**30
MORE_MEMORY = {"host_out_of_memory", "host_memory_refused", "child_killed", "memory_limit_hit"}
MORE_SHM = {"shared_memory_full", "bus_error", "shm_over_limit"}
FIRST_SHM = GIB  # to ask for where none was asked
_BATCH = (
    "batch_size",
    "batchsize",
    "per_device_train_batch_size",
    "train_batch_size",
    "micro_batch_size",
    "batch",
    "bs",
)
_RATE = ("learning_rate", "lr", "rate")
# distributions whose module has another name
_PACKAGES = {
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "bs4": "beautifulsoup4",
    "attr": "attrs",
    "dotenv": "python-dotenv",
    "google.protobuf": "protobuf",
}


def values_of(scene: Scene, worker: WorkerEnd | None) -> dict[str, str]:
    """Everything about the job that a template may name; what is not known stays out."""
    values = {
        "memory": size(scene.memory_bytes),
        "more_memory": size(2 * scene.memory_bytes),
        "shm": size(scene.shm_bytes),
        "more_shm": size(2 * scene.shm_bytes or FIRST_SHM),
        "limit": length(scene.time_limit),
        "more_time": length(2 * scene.time_limit),
        "image": scene.image,
        "gpus": str(scene.gpus or ""),
        "step": f"{scene.step:,}" if scene.step is not None else "",
    }
    if worker:
        values["node"] = worker.node
        values["exit"] = "" if worker.exit_code is None else str(worker.exit_code)
    elif scene.exit_code is not None:
        values["exit"] = str(scene.exit_code)
    if batch := _number(scene.parameters, _BATCH):
        name, now = batch
        if now >= 2:
            values |= {"parameter": name, "now": f"{now:g}", "half": str(int(now // 2))}
    if rate := _number(scene.parameters, _RATE):
        values |= {"rate": rate[0], "rate_now": f"{rate[1]:g}", "rate_less": f"{rate[1] / 10:g}"}
    return values


def package_of(module: str) -> str:
    """What pip calls it, as far as is known."""
    return _PACKAGES.get(module) or _PACKAGES.get(module.partition(".")[0]) or module.partition(".")[0]


def changes_of(kind: str, scene: Scene) -> tuple[tuple[str, str], ...]:
    """Fields of the form and the values to try in the next job; parameters as param.NAME."""
    if kind in MORE_MEMORY and scene.memory_bytes:
        return (("memory", f"{2 * scene.memory_bytes // MIB}Mi"),)
    if kind in MORE_SHM:
        return (("shm", f"{(2 * scene.shm_bytes or FIRST_SHM) // MIB}Mi"),)
    if kind == "time_limit" and scene.time_limit:
        return (("time_limit", f"{2 * scene.time_limit}s"),)
    if kind == "no_gpu_asked":
        return (("gpus", "1"),)
    if kind == "cuda_out_of_memory" and (batch := _number(scene.parameters, _BATCH)) and batch[1] >= 2:
        return ((f"param.{batch[0]}", str(int(batch[1] // 2))),)
    return ()


def _number(parameters: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, float] | None:
    by_name = {name.lower().replace("-", "_"): name for name in parameters}
    for name in names:
        given = by_name.get(name)
        if given is None:
            continue
        try:
            return given, float(parameters[given])
        except (TypeError, ValueError):  # it has that name and is no number
            continue
    return None


def size(count: int) -> str:
    if not count:
        return ""
    return f"{count / GIB:.4g} GiB" if count >= GIB else f"{count / MIB:.4g} MiB"


def length(seconds: int) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit} {name}"
    return f"{seconds} s" if seconds else ""
