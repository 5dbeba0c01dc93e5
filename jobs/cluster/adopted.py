"""A Job that somebody made beside the portal: whether it is one to queue, and what it asks for, in our words. Pure.

What such a Job says was written by anybody: what a database or the planner cannot hold is cut to what they can.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from jobs.cluster.fields import is_true, number, part, parts, text
from jobs.cluster.manifests import GPU_PRODUCT, JOB_LABEL
from jobs.cluster.port import Manifest
from jobs.cluster.room import requested
from jobs.cluster.tenancy import DEFAULT_REQUESTS
from jobs.spec import JobSpec, Resources

CREATED_BY = "trainhall.io/created-by"  # written by the policy trainhall-force-suspend
OURS = "j-"  # how names begin that only the portal gives
KUEUE = "kueue.x-k8s.io/queue-name"  # whoever wrote that wants Kueue to start it
MOST_WORKERS = 10_000  # as for a document
LARGEST_INT, LARGEST = 2**31 - 1, 2**63 - 1  # of the columns
LONGEST_NAME = 200
GRACE = 30  # seconds; what Kubernetes gives where nothing is said
_PRIORITY = "trainhall-"


def is_waiting(job: Manifest) -> bool:
    """Whether it waits for somebody to start it, and nobody but the portal will.

    Left alone: our own, what another controller made and starts (of a JobSet, say; a CronJob starts nothing), what has
    begun, what is on its way out, and a Job of no pods.
    """
    metadata, spec = part(job, "metadata"), part(job, "spec")
    labels = part(metadata, "labels")
    owners = [text(owner, "kind") for owner in parts(metadata, "ownerReferences")]
    return (
        spec.get("suspend") is True
        and JOB_LABEL not in labels
        and KUEUE not in labels
        and not text(metadata, "deletionTimestamp")
        and not text(job, "status", "startTime")
        and not (is_true(job, "Complete") or is_true(job, "Failed"))
        and all(kind == "CronJob" for kind in owners)
        and not text(metadata, "name").startswith(OURS)
        and workers_of(job) > 0
    )


def workers_of(job: Manifest) -> int:
    """Its pods at one time."""
    parallelism, completions = number(job, "spec", "parallelism"), number(job, "spec", "completions")
    at_once = 1 if parallelism is None else parallelism
    return at_once if completions is None else min(at_once, completions)


def created_by(job: Manifest) -> str:
    """Who made it, as the API server calls them; "" where no policy wrote that down."""
    return text(job, "metadata", "annotations", CREATED_BY)[:LONGEST_NAME]


def spec_of(job: Manifest, *, namespace: str, cluster: str, time_limit: int) -> JobSpec:
    """As if it had been a document: what the planner, the forecast and the page read. `time_limit`: where it has none."""
    pod = part(job, "spec", "template", "spec")
    main = main_container(pod)
    priority = text(pod, "priorityClassName").removeprefix(_PRIORITY)
    return JobSpec(
        namespace=namespace,
        cluster=cluster,
        name=text(job, "metadata", "name")[:LONGEST_NAME],
        runtime="",
        image=text(main, "image"),
        command=shlex.join(str(word) for word in (*(main.get("command") or ()), *(main.get("args") or ()))),
        resources=_resources(job, pod),
        priority=priority if priority in ("normal", "low") else "normal",
        preemptible=False,  # it would begin from nothing, and only its owner knows whether it can
        time_limit=min(number(job, "spec", "activeDeadlineSeconds") or time_limit, LARGEST_INT),
        retries=0,
        stop_grace=number(pod, "terminationGracePeriodSeconds") or GRACE,
    )


def _resources(job: Manifest, pod: Manifest) -> Resources:
    filled = {kind: [_filled(one) for one in parts(pod, kind)] for kind in ("containers", "initContainers")}
    cpu, memory, gpus = requested({"spec": filled})
    return Resources(
        workers=min(workers_of(job), MOST_WORKERS),
        gpus=min(gpus, LARGEST_INT),
        gpu_type=text(pod, "nodeSelector", GPU_PRODUCT)[:60] if gpus else "",
        cpu_millis=min(cpu, LARGEST_INT),
        memory_bytes=min(memory, LARGEST),
    )


def _filled(container: Manifest) -> Manifest:
    """With the requests that its pod will have: the API server takes a limit for a request, then the namespace's defaults."""
    resources = part(container, "resources")
    requests = {**DEFAULT_REQUESTS, **part(resources, "limits"), **part(resources, "requests")}
    return {**container, "resources": {"requests": requests}}


def main_container(pod: Mapping[str, Any]) -> Manifest:
    """The one called `main`, else the first."""
    containers = parts(pod, "containers")
    return next((one for one in containers if text(one, "name") == "main"), containers[0] if containers else {})


def kept(job: Manifest) -> Manifest:
    """What its maker wrote, without what the cluster says of it, and without what a database cannot hold."""
    metadata = part(job, "metadata")
    names = ("name", "namespace", "labels", "annotations", "ownerReferences")
    found = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {name: metadata[name] for name in names if metadata.get(name)},
        "spec": part(job, "spec"),
    }
    return dict(_storable(found))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(key): _storable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_storable(inner) for inner in value]
    return value
