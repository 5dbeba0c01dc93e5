"""The dev cluster is real: ranks that find each other, GPUs that are counted, policies that bite, an audit trail."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.lacking import lacking

pytestmark = pytest.mark.cluster

GANG = """
apiVersion: v1
kind: Service
metadata: {name: gang}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {job-name: gang}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: gang}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: gang
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      nodeSelector: {type: real}
      containers:
      - name: main
        image: localhost/python:1
        resources: {limits: {nvidia.com/gpu: "2"}}
        command: [python3, -c]
        args:
        - |
          import os, socket, time
          import numpy
          rank = int(os.environ["JOB_COMPLETION_INDEX"])
          listening = socket.create_server(("", 5000))
          deadline = time.monotonic() + 60
          while True:
              try:
                  talk = socket.create_connection((f"gang-{1 - rank}.gang", 5000), timeout=5)
                  break
              except OSError:
                  if time.monotonic() > deadline:
                      raise
                  time.sleep(0.2)
          talk.sendall(numpy.full(4, rank, dtype="<f8").tobytes())
          heard = listening.accept()[0].recv(32, socket.MSG_WAITALL)
          print(f"rank {rank} heard a sum of {numpy.frombuffer(heard).sum():.0f}", flush=True)
"""


# a page of one word on port 8080
PAGE = "echo hello > /tmp/index.html; httpd -f -p 8080 -h /tmp"


@pytest.mark.usefixtures("containers")
def test_two_ranks_of_an_indexed_job_find_each_other_by_name(kubectl: Kubectl, namespace: str) -> None:
    kubectl("-n", namespace, "apply", "-f", "-", text=GANG)
    kubectl("-n", namespace, "wait", "--for=condition=Complete", "job/gang", "--timeout=90s")
    said = kubectl("-n", namespace, "logs", "job/gang", "--all-pods")
    assert "rank 0 heard a sum of 4" in said
    assert "rank 1 heard a sum of 0" in said
    kubectl("-n", namespace, "delete", "job/gang", "service/gang", "--timeout=60s")
    assert kubectl("-n", namespace, "get", "pods", "-o", "name") == ""


@pytest.mark.usefixtures("containers")
def test_a_pod_waits_for_gpus_that_are_not_there(kubectl: Kubectl, namespace: str) -> None:
    total = int(
        kubectl("get", "nodes", "-l", "type=real", "-o", r"jsonpath={.items[0].status.allocatable.nvidia\.com/gpu}")
    )
    kubectl("-n", namespace, "apply", "-f", "-", text=pod("greedy", gpus=total + 1))
    kubectl("-n", namespace, "wait", "--for=condition=PodScheduled=False", "pod/greedy", "--timeout=30s")
    why = kubectl("-n", namespace, "get", "pod", "greedy", "-o", "jsonpath={.status.conditions[0].message}")
    assert "Insufficient nvidia.com/gpu" in why


@pytest.mark.usefixtures("containers")
def test_a_shell_in_a_container_without_python(kubectl: Kubectl, namespace: str) -> None:
    kubectl("-n", namespace, "apply", "-f", "-", text=pod("small", image="localhost/busybox:1"))
    kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod/small", "--timeout=60s")
    said = kubectl("-n", namespace, "exec", "small", "--", "sh", "-c", "id -u; command -v python3 || echo none")
    assert said.split() == ["20123", "none"]
    kubectl("-n", namespace, "delete", "pod", "small", "--timeout=60s")


@pytest.mark.usefixtures("containers")
def test_a_network_policy_closes_a_port_and_opens_it_again(kubectl: Kubectl, namespace: str) -> None:
    kubectl("-n", namespace, "apply", "-f", "-", text=pod("server", command=PAGE))
    kubectl("-n", namespace, "apply", "-f", "-", text=pod("caller"))
    kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod/server", "pod/caller", "--timeout=60s")
    address = kubectl("-n", namespace, "get", "pod", "server", "-o", "jsonpath={.status.podIP}")

    def call() -> str:
        ask = f"timeout 2 wget -q -O - http://{address}:8080/ 2>/dev/null || echo refused"
        return kubectl("-n", namespace, "exec", "caller", "--", "sh", "-c", ask).strip()

    assert eventually(call) == "hello"
    closed = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"}}
    kubectl("-n", namespace, "apply", "-f", "-", text=json.dumps(closed | {"spec": {"podSelector": {}, "ingress": []}}))
    assert eventually(call, "refused") == "refused"
    kubectl("-n", namespace, "delete", "networkpolicy", "closed")
    assert eventually(call) == "hello"


@pytest.mark.usefixtures("containers")
def test_a_service_has_an_address_of_its_own(kubectl: Kubectl, namespace: str) -> None:
    kubectl("-n", namespace, "apply", "-f", "-", text=pod("web", command=PAGE))
    kubectl("-n", namespace, "expose", "pod", "web", "--port=80", "--target-port=8080")
    kubectl("-n", namespace, "apply", "-f", "-", text=pod("caller"))
    kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod/web", "pod/caller", "--timeout=60s")

    def call() -> str:
        ask = "timeout 2 wget -q -O - http://web/ 2>/dev/null || echo refused"
        return kubectl("-n", namespace, "exec", "caller", "--", "sh", "-c", ask).strip()

    assert eventually(call) == "hello"


def test_the_audit_log_names_the_person_and_who_spoke_for_them(
    kubectl: Kubectl, namespace: str, devcluster: Path
) -> None:
    log = devcluster.parent / "logs" / "audit.log"
    if not log.exists():
        lacking("This cluster keeps its audit log elsewhere.")
    kubectl("-n", namespace, "create", "rolebinding", "alice", "--clusterrole=edit", "--user=alice")
    kubectl("-n", namespace, "--as=alice", "--as-group=vision", "create", "configmap", "hers")
    entries = [json.loads(line) for line in log.read_text().splitlines() if f'"{namespace}"' in line]
    [made] = [
        entry
        for entry in entries
        if entry["verb"] == "create"
        and entry.get("objectRef", {}).get("name") == "hers"
        and "impersonatedUser" in entry
    ]
    assert made["user"]["username"] == "admin"
    assert made["impersonatedUser"]["username"] == "alice"
    assert "vision" in made["impersonatedUser"]["groups"]
    assert made["responseStatus"]["code"] == 201


def test_fake_nodes_are_ready_and_run_a_pod_to_its_end(kubectl: Kubectl, namespace: str) -> None:
    nodes = json.loads(kubectl("get", "nodes", "-l", "type=kwok", "-o", "json"))["items"]
    if not nodes:
        lacking("This cluster has no fake nodes.")
    for node in nodes:
        ready = [condition["status"] for condition in node["status"]["conditions"] if condition["type"] == "Ready"]
        assert ready == ["True"]
        assert int(node["status"]["allocatable"]["nvidia.com/gpu"]) > 0
    fake = json.loads(pod("fake", gpus=1))
    fake["metadata"]["annotations"] = {"fake/run-seconds": "1", "fake/exit-code": "3"}
    fake["spec"] |= {
        "nodeSelector": {"type": "kwok"},
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    }
    kubectl("-n", namespace, "apply", "-f", "-", text=json.dumps(fake))
    kubectl("-n", namespace, "wait", "--for=jsonpath={.status.phase}=Failed", "pod/fake", "--timeout=30s")
    code = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    assert kubectl("-n", namespace, "get", "pod", "fake", "-o", code) == "3"


def pod(name: str, *, image: str = "localhost/busybox:1", command: str = "sleep 600", gpus: int = 0) -> str:
    """As a member's pod is: on the real node, not root, with nothing it could raise itself by."""
    container = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", f"trap exit TERM; {command} & wait"],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"type": "real"},
        "securityContext": {"runAsUser": 20123, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    metadata = {"name": name, "labels": {"app": name}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def eventually(ask: Callable[[], str], wanted: str = "hello", *, patience: float = 20.0) -> str:
    """The answer, once it is the wanted one: rules and addresses reach a node a moment after the API server."""
    deadline = time.monotonic() + patience
    while (answer := ask()) != wanted and time.monotonic() < deadline:
        time.sleep(0.3)
    return answer
