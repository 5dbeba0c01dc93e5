"""What each node has in all and how much of it is free, from raw Nodes and Pods. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jobs.cluster.fields import condition, part, parts, text
from jobs.cluster.manifests import GPU, GPU_PRODUCT
from jobs.cluster.port import Manifest
from jobs.cluster.quantities import parse_count, parse_cpu, parse_memory
from jobs.cluster.taints import first_not_tolerated

TOPOLOGY = "topology."  # how the names of labels begin that say where a node stands
VIRTUAL_LABEL = "trainhall.io/virtual-gpus"


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """One node. What is free may be negative where pods of others were squeezed in."""

    name: str
    ready: bool
    cpu_millis: int
    memory_bytes: int
    gpus: int
    gpu_type: str
    virtual: bool  # the GPUs are a demo's
    free_cpu_millis: int
    free_memory_bytes: int
    free_gpus: int
    closed: str = ""  # why no pod of ours may come; "" where it may
    domains: dict[str, str] = field(default_factory=dict)  # what its labels say about where it stands


def free_capacity(
    nodes: Sequence[Manifest], pods: Sequence[Manifest], *, tolerations: Sequence[Manifest] = ()
) -> list[NodeCapacity]:
    """In order of name, for pods with these tolerations. A pod counts on its node until it has ended, whoever owns it."""
    used: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for pod in pods:
        if text(pod, "status", "phase") not in ("Succeeded", "Failed"):
            total = used[text(pod, "spec", "nodeName")]
            for position, amount in enumerate(requested(pod)):
                total[position] += amount
    found = (_capacity(node, used[text(node, "metadata", "name")], tolerations) for node in nodes)
    return sorted(found, key=lambda node: node.name)


def _capacity(node: Manifest, used: list[int], tolerations: Sequence[Manifest]) -> NodeCapacity:
    labels = part(node, "metadata", "labels")
    cpu, memory, gpus = _amounts(part(node, "status", "allocatable"))
    closed = _why_closed(node, tolerations)
    return NodeCapacity(
        name=text(node, "metadata", "name"),
        ready=not closed,
        cpu_millis=cpu,
        memory_bytes=memory,
        gpus=gpus,
        gpu_type=text(labels, GPU_PRODUCT),
        virtual=text(labels, VIRTUAL_LABEL) == "true",
        free_cpu_millis=cpu - used[0],
        free_memory_bytes=memory - used[1],
        free_gpus=gpus - used[2],
        closed=closed,
        domains={key: str(value) for key, value in labels.items() if key.startswith(TOPOLOGY)},
    )


def _why_closed(node: Manifest, tolerations: Sequence[Manifest]) -> str:
    """As `kubectl get nodes` would say it, or the taint that keeps our pods away."""
    if condition(node, "Ready").get("status") != "True":
        return "not ready"
    if part(node, "spec").get("unschedulable"):
        return "cordoned"
    kept_away_by = first_not_tolerated(parts(node, "spec", "taints"), tolerations)
    return f"taint {text(kept_away_by, 'key')}" if kept_away_by else ""


def requested(pod: Manifest) -> tuple[int, int, int]:
    """As the scheduler counts: the containers together with sidecars, or the largest init container, if that is more."""
    together = [_amounts(part(spec, "resources", "requests")) for spec in parts(pod, "spec", "containers")]
    largest = [(0, 0, 0)]
    for spec in parts(pod, "spec", "initContainers"):
        amounts = _amounts(part(spec, "resources", "requests"))
        if text(spec, "restartPolicy") == "Always":
            together.append(amounts)
        else:
            largest.append(amounts)
    sums = [sum(column) for column in zip(*together, strict=True)] or [0, 0, 0]
    most = [max(column) for column in zip(*largest, strict=True)]
    cpu, memory, gpus = (max(pair) for pair in zip(sums, most, strict=True))
    return cpu, memory, gpus


def _amounts(resources: dict[str, Any]) -> tuple[int, int, int]:
    """Thousandths of a CPU, bytes, GPUs. What cannot be read counts as nothing: other people's pods must not blind us."""
    return (
        _read(parse_cpu, resources.get("cpu")),
        _read(parse_memory, resources.get("memory")),
        _read(parse_count, resources.get(GPU)),
    )


def _read(parse: Callable[[Any], int], quantity: Any) -> int:
    if quantity is None:
        return 0
    if isinstance(quantity, str):
        return _read_text(parse, quantity)
    try:
        return int(parse(quantity))
    except ValueError:
        return 0


@lru_cache(maxsize=4096)  # thousands of pods ask for a few different amounts, and are added up every few seconds
def _read_text(parse: Callable[[Any], int], quantity: str) -> int:
    try:
        return int(parse(quantity))
    except ValueError:
        return 0
