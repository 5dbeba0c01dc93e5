"""One attempt on a real control plane, brought where a test wants it: by the controllers, or as a kubelet would write it."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.devcluster.api import Refused
from jobs.cluster.fields import condition, is_true
from jobs.cluster.pods import GONE
from tests.cluster.control_plane import JSON_MERGE, ControlPlane, within

Raw = dict[str, Any]
PLAIN = Path(__file__).parent.parent / "data" / "manifests" / "plain.json"
QUIET = "quiet-1"  # a node without anything that answers for it: what happens on it is written by the test
AT, LATER, LAST = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", "2026-01-01T00:12:00Z"
PATIENCE = 40


class Stage:
    """A namespace with the quiet node, kept ready as a kubelet would."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        self.numbers = itertools.count(1)
        self.nodes: list[str] = []

    @contextmanager
    def open(self) -> Iterator[Stage]:
        self.plane.namespace(self.namespace)
        stop = threading.Event()
        self.add_node(QUIET)
        thread = threading.Thread(target=self._beat, args=[stop], daemon=True)
        thread.start()
        yield self
        stop.set()
        thread.join()
        for name in self.nodes:
            self.plane.send("DELETE", f"/api/v1/nodes/{name}")

    def add_node(self, name: str, *, kind: str = "quiet") -> None:
        size = {"cpu": "64", "memory": "512Gi", "pods": "500", "nvidia.com/gpu": "8", "ephemeral-storage": "1Ti"}
        labels = {"kubernetes.io/hostname": name, "type": kind}
        self.plane.send("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        self.nodes.append(name)
        self.plane.send("PATCH", f"/api/v1/nodes/{name}/status", self._ready(size), kind=JSON_MERGE)
        # the controllers put a new node out of bounds until they have seen that it is ready
        within(
            30, lambda: not self.plane.send("GET", f"/api/v1/nodes/{name}")["spec"].get("taints"), what="its taints go"
        )

    def _ready(self, size: dict[str, str] | None = None) -> Raw:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        return {"status": {"conditions": [ready], **({"capacity": size, "allocatable": size} if size else {})}}

    def _beat(self, stop: threading.Event) -> None:
        while not stop.wait(5):
            for name in list(self.nodes):
                self.plane.send("PATCH", f"/api/v1/nodes/{name}/status", self._ready(), kind=JSON_MERGE)


class Scene:
    """The Job of one attempt, its pods and the warnings about them."""

    def __init__(self, stage: Stage, namespace: str = "") -> None:
        self.plane = stage.plane
        self.namespace = namespace or stage.namespace
        self.name = f"j-{next(stage.numbers):010d}-1"
        self.jobs = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        self.all_pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self.uid = ""
        self.kept_job: Raw | None = None
        self.kept_pods: list[Raw] = []

    # What the portal does

    def create(
        self,
        *,
        workers: int = 1,
        node: str = "quiet",
        suspend: bool = False,
        pod: Raw | None = None,
        notes: Raw | None = None,
        **spec: Any,
    ) -> Scene:
        """Our own manifest, without what this control plane has not: classes, accounts and volumes of a namespace."""
        job = json.loads(PLAIN.read_text())["jobs"][0]
        job["metadata"] = {"name": self.name, "labels": job["metadata"].get("labels") or {}}
        inner = job["spec"]["template"]["spec"]
        for key in ("priorityClassName", "serviceAccountName", "volumes", "nodeSelector", "affinity"):
            inner.pop(key, None)
        for container in (*inner["initContainers"], *inner["containers"]):
            container.pop("volumeMounts", None)
            container["env"] = []
            container["resources"].get("limits", {}).pop("nvidia.com/gpu", None)
            container["resources"].get("requests", {}).pop("nvidia.com/gpu", None)
        inner["nodeSelector"] = {"type": node}
        inner["tolerations"] = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
        inner |= pod or {}
        job["spec"]["template"]["metadata"]["annotations"] = notes or {}
        job["spec"] |= {"suspend": suspend, "completions": workers, "parallelism": workers} | spec
        self.uid = self.plane.send("POST", self.jobs, job)["metadata"]["uid"]
        return self

    def started(self, **options: Any) -> Scene:
        """With all its pods, bound to the quiet node, which does nothing about them."""
        self.create(**options)
        workers = options.get("workers", 1)
        within(PATIENCE, lambda: len(self.pods()) == workers, what="its pods")
        within(PATIENCE, lambda: all(pod["spec"].get("nodeName") for pod in self.pods()), what="their node")
        return self

    def faked(self, exit_code: int | None = None, *, seconds: int = 1, **options: Any) -> Scene:
        """On fake nodes, whose pods run, and end after some seconds if they have an exit code."""
        ends = {"fake/run-seconds": str(seconds), "fake/exit-code": str(exit_code)}
        return self.create(node="kwok", notes={} if exit_code is None else ends, **options)

    def suspend(self, value: bool = True) -> None:
        self.plane.send("PATCH", f"{self.jobs}/{self.name}", {"spec": {"suspend": value}}, kind=JSON_MERGE)

    def delete(self) -> Scene:
        """The Job, its pods staying until they are deleted too; both are kept in their last form, as the mirror does."""
        self.kept_pods = [gone(pod) for pod in self.pods()]
        for pod in self.pods():
            self._without_finalizers(pod)
            self.plane.delete_pod(self.namespace, pod["metadata"]["name"])
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        self.plane.send("DELETE", f"{self.jobs}/{self.name}", options)
        within(PATIENCE, lambda: self.job() is None, what="its end")
        return self

    # What others do

    def write(self, index: int = 0, **status: Any) -> Scene:
        """As the kubelet does."""
        pod = self.pods()[index]
        self.plane.set_pod(self.namespace, pod["metadata"]["name"], status)
        return self

    def end(self, index: int, code: int, reason: str = "", *, at: str = LATER, **more: Any) -> Scene:
        """The main container ends, the rest with it."""
        phase = "Succeeded" if code == 0 else "Failed"
        return self.write(index, **{"phase": phase, **containers(main=terminated(code, reason, at=at)), **more})

    def run(self, index: int = 0) -> Scene:
        return self.write(index, phase="Running", conditions=[ready()], **containers(main=RUNNING))

    def delete_pod(self, index: int = 0) -> None:
        """Asked to end, with nobody there who would do it."""
        self.plane.send("DELETE", f"{self.all_pods}/{self.pods()[index]['metadata']['name']}")

    def force_delete_pod(self, index: int = 0) -> None:
        pod = self.pods()[index]
        self._without_finalizers(pod)
        self.plane.delete_pod(self.namespace, pod["metadata"]["name"])

    def _without_finalizers(self, pod: Raw) -> None:
        path = f"{self.all_pods}/{pod['metadata']['name']}"
        self.plane.send("PATCH", path, {"metadata": {"finalizers": None}}, kind=JSON_MERGE)

    def warn(self, reason: str, message: str, index: int = 0) -> Scene:
        """An event as the kubelet writes it."""
        pod = self.pods()[index]["metadata"]
        about = {"kind": "Pod", "apiVersion": "v1", "namespace": self.namespace, "name": pod["name"], "uid": pod["uid"]}
        event = {"metadata": {"generateName": f"{pod['name']}."}, "involvedObject": about, "type": "Warning"}
        event |= {"reason": reason, "message": message, "source": {"component": "kubelet", "host": QUIET}}
        event |= {"firstTimestamp": LATER, "lastTimestamp": LATER, "count": 1}
        self.plane.send("POST", f"/api/v1/namespaces/{self.namespace}/events", event)
        return self

    def says(self, kind: str) -> Scene:
        """The Job controller comes to that condition."""
        within(PATIENCE, lambda: is_true(self.job() or {}, kind), what=f"{kind} of {self.name}")
        return self

    def until(self, question: Callable[[], Any], what: str) -> Scene:
        within(PATIENCE, question, what=what)
        return self

    def unschedulable(self) -> Scene:
        def told() -> bool:
            return any(condition(pod, "PodScheduled").get("message") for pod in self.pods())

        return self.until(told, "the scheduler's word")

    def refused(self) -> Scene:
        return self.until(lambda: any(event["reason"] == "FailedCreate" for event in self.events()), "FailedCreate")

    # What there is

    def job(self) -> Raw | None:
        try:
            return plain(self.plane.send("GET", f"{self.jobs}/{self.name}"))
        except Refused as error:
            if error.status != 404:
                raise
            return None

    def pods(self) -> list[Raw]:
        found = self.plane.send("GET", f"{self.all_pods}?labelSelector=batch.kubernetes.io/job-name%3D{self.name}")
        index = "batch.kubernetes.io/job-completion-index"
        return sorted(
            map(plain, found["items"]), key=lambda pod: (pod["metadata"]["labels"][index], pod["metadata"]["name"])
        )

    def events(self) -> list[Raw]:
        uids = {self.uid, *(pod["metadata"]["uid"] for pod in self.pods())}
        path = f"/api/v1/namespaces/{self.namespace}/events?fieldSelector=type%3DWarning"
        return [plain(one) for one in self.plane.send("GET", path)["items"] if one["involvedObject"]["uid"] in uids]


def plain(item: Raw) -> Raw:
    item["metadata"].pop("managedFields", None)
    return item


def gone(pod: Raw) -> Raw:
    """As the mirror keeps what was deleted."""
    annotations = {**(pod["metadata"].get("annotations") or {}), GONE: "true"}
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations}}


RUNNING = {"running": {"startedAt": AT}}


def waiting(reason: str, message: str = "") -> Raw:
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def terminated(code: int, reason: str = "", *, message: str = "", at: str = LATER, signal: int = 0) -> Raw:
    end: Raw = {"exitCode": code, "reason": reason or ("Completed" if code == 0 else "Error")}
    end |= {"startedAt": AT, "finishedAt": at, "containerID": "containerd://0"}
    return {"terminated": end | ({"message": message} if message else {}) | ({"signal": signal} if signal else {})}


def containers(
    main: Raw | None = None,
    setup: Raw | None = None,
    agent: Raw | None = None,
    *,
    image: str = "ml/numpy:1",
    restarts: int = 0,
) -> Raw:
    """All three, as far as a pod of ours has come when its main container is there."""
    setup = setup or terminated(0, at=AT)
    ended = main is not None and "terminated" in main
    agent = agent or (terminated(0) if ended else RUNNING)
    helper = "registry.example.org/trainhall:1.0"
    first = [_status("setup", setup, helper), _status("agent", agent, helper, restarts)]
    return {
        "initContainerStatuses": first,
        "containerStatuses": [_status("main", main or waiting("PodInitializing"), image)],
    }


def _status(name: str, state: Raw, image: str, restarts: int = 0) -> Raw:
    runs = "running" in state
    common = {"name": name, "image": image, "imageID": "", "restartCount": restarts, "ready": runs, "started": runs}
    return common | {"state": state}


def ready(status: str = "True", reason: str = "", message: str = "") -> Raw:
    return {"type": "Ready", "status": status, **({"reason": reason, "message": message} if reason else {})}


def disrupted(reason: str, message: str = "") -> Raw:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": LATER,
    }
