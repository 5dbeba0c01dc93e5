"""The attempt's files in Kubernetes' words: Job, Pod and Node as a real API server would show them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jobs.cluster.local.facts import ObjectFacts, PodFacts
from jobs.cluster.manifests import GPU, GPU_PRODUCT, INDEX_LABEL
from jobs.cluster.port import Manifest
from jobs.cluster.quantities import format_cpu
from jobs.cluster.room import VIRTUAL_LABEL

IMAGE_IGNORED = "trainhall.io/image-ignored"
MAX_PODS = 110
LOST, UNKNOWN = "NodeLost", "OutcomeUnknown"

Status = dict[str, Any]


def timestamp(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


# The Job


def job_of(facts: ObjectFacts) -> Manifest:
    """Of one role; of an attempt with several, the others are `facts.others`."""
    job = facts.job
    metadata = dict(job["metadata"])
    if facts.deleting is not None:
        metadata["deletionTimestamp"] = timestamp(facts.deleting["at"])
    spec = job["spec"] | {"suspend": facts.released is None or facts.is_stopping}
    return job | {"metadata": metadata, "spec": spec, "status": _job_status(facts)}


def _job_status(facts: ObjectFacts) -> Status:
    pods = facts.existing_pods
    ended = [pod for pod in pods if pod.exited is not None]
    running = [pod for pod in pods if pod.exited is None]
    status: Status = {
        "active": len(running),
        "ready": sum(_phase(pod) == "Running" for pod in running),
        "succeeded": sum(_phase(pod) == "Succeeded" for pod in ended),
        "failed": sum(_phase(pod) == "Failed" for pod in ended),
        "terminating": len(running) if _ending_deadline(facts) is not None else 0,
        "conditions": _job_conditions(facts, pods, over=len(pods) == len(facts.pods) and not running),
    }
    if facts.released is not None:
        status["startTime"] = timestamp(facts.released["at"])
    if any(condition["type"] == "Complete" for condition in status["conditions"]):
        status["completionTime"] = timestamp(max(pod.exited["finished_at"] for pod in ended if pod.exited))
    return status


def _job_conditions(facts: ObjectFacts, pods: tuple[PodFacts, ...], *, over: bool) -> list[Status]:
    """The most final thing first, as a reader wants it."""
    if over and pods and all(pod.exited and pod.exited["code"] == 0 and not pod.ended_by for pod in pods):
        at = max(pod.exited["finished_at"] for pod in pods if pod.exited)
        message = "Reached expected number of succeeded pods"
        return [
            _condition("SuccessCriteriaMet", at, "CompletionsReached", message),
            _condition("Complete", at, "CompletionsReached", message),
        ]
    failure = _failure(facts)
    if failure is not None:
        at, reason, message = failure
        conditions = [_condition("FailureTarget", at, reason, message)]
        if facts.is_over:
            conditions.append(_condition("Failed", at, reason, message))
        return conditions
    if facts.released is None or facts.is_stopping:
        stop = facts.stop or facts.kill
        return [_condition("Suspended", stop["at"] if stop else None, "JobSuspended", "Job suspended")]
    return []


def _failure(facts: ObjectFacts) -> tuple[float, str, str] | None:
    """When, why and in which words the Job fails, as its podFailurePolicy has it."""
    if facts.failed is not None and facts.failed["kind"] == "deadline":
        return facts.failed["at"], "DeadlineExceeded", "Job was active longer than specified deadline"
    culprits = sorted(
        (pod for pod in facts.pods if pod.has_failed), key=lambda pod: pod.exited["finished_at"] if pod.exited else 0.0
    )
    if not culprits:
        return None
    first = culprits[0]
    assert first.exited is not None
    at = first.exited["finished_at"]
    where = f"{facts.job['metadata']['namespace']}/{pod_name(facts, first)}"
    for index, rule in enumerate(facts.job["spec"].get("podFailurePolicy", {}).get("rules", ())):
        if "onPodConditions" in rule and _disruption(first):
            message = f"Pod {where} has condition DisruptionTarget matching FailJob rule at index {index}"
            return at, "PodFailurePolicy", message
        if "onExitCodes" in rule and _matches(rule["onExitCodes"], first.exited):
            container, code = first.exited["container"], first.exited["code"]
            message = f"Container {container} for pod {where} failed with exit code {code} matching FailJob rule at index {index}"
            return at, "PodFailurePolicy", message
    return at, "BackoffLimitExceeded", "Job has reached the specified backoff limit"


def _matches(rule: Status, exited: Status) -> bool:
    if exited["code"] in (None, 0) or rule.get("containerName") not in (None, exited["container"]):
        return False
    return bool((exited["code"] in rule["values"]) == (rule["operator"] == "In"))


def _condition(kind: str, at: float | None, reason: str, message: str, status: str = "True") -> Status:
    return {"type": kind, "status": status, "lastTransitionTime": timestamp(at), "reason": reason, "message": message}


def _ending_deadline(facts: ObjectFacts) -> float | None:
    """When what still runs is killed, if it is being ended."""
    if facts.kill is not None:
        return float(facts.kill["at"])
    if facts.stop is not None:
        return float(facts.stop["deadline"])
    if facts.failed is not None:
        grace = facts.job["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30)
        return float(facts.failed["at"]) + float(grace)
    return None


# Pods


def pod_name(facts: ObjectFacts, pod: PodFacts) -> str:
    return f"{facts.job['metadata']['name']}-{pod.record['index']}-{pod.record['uid'][:5]}"


def pod_of(facts: ObjectFacts, pod: PodFacts, *, node: str) -> Manifest:
    job, template = facts.job, facts.job["spec"]["template"]
    index = str(pod.record["index"])
    assert facts.released is not None
    metadata: Status = {
        "name": pod_name(facts, pod),
        "namespace": job["metadata"]["namespace"],
        "uid": pod.record["uid"],
        "creationTimestamp": timestamp(facts.released["at"]),
        "labels": {
            **template["metadata"]["labels"],
            INDEX_LABEL: index,
            "batch.kubernetes.io/job-name": job["metadata"]["name"],
        },
        "annotations": {INDEX_LABEL: index, IMAGE_IGNORED: template["spec"]["containers"][0]["image"]},
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": job["metadata"]["name"],
                "uid": job["metadata"]["uid"],
                "controller": True,
            }
        ],
    }
    deadline = _ending_deadline(facts)
    if deadline is not None and (pod.exited is None or pod.ended_by):
        metadata["deletionTimestamp"] = timestamp(deadline)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**template["spec"], "nodeName": node, "hostname": f"{job['metadata']['name']}-{index}"},
        "status": _pod_status(facts, pod),
    }


def _phase(pod: PodFacts) -> str:
    if pod.exited is not None:
        if pod.ended_by == "disruption":
            return "Failed"  # as a node that shuts down leaves its pods, whatever their exit code
        return "Succeeded" if pod.exited["code"] == 0 else "Failed"
    return "Running" if _main_started(pod) else "Pending"


def _main_started(pod: PodFacts) -> bool:
    return "main" in pod.containers


def _disruption(pod: PodFacts) -> str:
    """The reason of the condition DisruptionTarget, "" where there is none."""
    if pod.exited is None:
        return ""
    if pod.exited["reason"] == LOST:
        return "DeletionByPodGC"
    return "TerminationByKubelet" if pod.ended_by == "disruption" else ""


def _pod_status(facts: ObjectFacts, pod: PodFacts) -> Status:
    assert facts.released is not None
    phase = _phase(pod)
    begun = pod.started["at"] if pod.started else None
    ready = "True" if phase == "Running" else "False"
    status: Status = {
        "phase": phase,
        "conditions": [
            _condition("PodScheduled", facts.released["at"], "", ""),
            _condition("Ready", begun, "", "", ready),
        ],
        "initContainerStatuses": _container_statuses(facts, pod, "initContainers"),
        "containerStatuses": _container_statuses(facts, pod, "containers"),
    }
    if begun is not None:
        status["startTime"] = timestamp(begun)
    if pod.exited and pod.exited.get("note"):
        status["message"] = pod.exited["note"]
    disruption = _disruption(pod)
    if disruption and pod.exited:
        message = pod.exited.get("note") or "The portal was shut down."
        status["conditions"].append(_condition("DisruptionTarget", pod.exited["finished_at"], disruption, message))
        status["reason"] = LOST if pod.exited["reason"] == LOST else "Terminated"
        status["message"] = message
    return status


def _container_statuses(facts: ObjectFacts, pod: PodFacts, kind: str) -> list[Status]:
    return [
        {
            "name": spec["name"],
            "image": spec["image"],
            "restartCount": 0,
            "state": _container_state(pod, spec["name"]),
        }
        for spec in facts.job["spec"]["template"]["spec"].get(kind, ())
    ]


def _container_state(pod: PodFacts, name: str) -> Status:
    seen = pod.containers.get(name)
    if seen is None:
        if pod.exited is not None:
            return {"waiting": {"reason": "PodTerminated"}}
        return {"waiting": {"reason": "PodInitializing" if pod.started else "ContainerCreating"}}
    begun = timestamp(seen["started_at"])
    if "code" in seen:
        last = pod.exited if pod.exited and pod.exited["container"] == name else None
        terminated = {
            "exitCode": last["code"] if last else seen["code"],
            "reason": last["reason"] if last else ("Completed" if seen["code"] == 0 else "Error"),
            "message": last["message"] if last else "",
            "startedAt": begun,
            "finishedAt": timestamp(seen["finished_at"]),
        }
        signal = last["signal"] if last else seen["signal"]
        return {"terminated": terminated | ({"signal": signal} if signal else {})}
    if pod.exited is not None:  # its runner died, so nobody saw the end
        return {
            "terminated": {
                "exitCode": 137,
                "reason": "ContainerStatusUnknown",
                "message": pod.exited.get("note", ""),
                "startedAt": begun,
                "finishedAt": timestamp(pod.exited["finished_at"]),
            }
        }
    return {"running": {"startedAt": begun}}


# The node


def node_of(
    name: str, *, cpu_millis: int, memory_bytes: int, gpus: int, gpu_product: str, is_virtual: bool
) -> Manifest:
    labels = {"kubernetes.io/hostname": name}
    amounts = {"cpu": format_cpu(cpu_millis), "memory": str(memory_bytes), "pods": str(MAX_PODS)}
    if gpus:
        amounts[GPU] = str(gpus)
        labels[GPU_PRODUCT] = gpu_product
        if is_virtual:
            labels[VIRTUAL_LABEL] = "true"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"local-{name}", "labels": labels},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
