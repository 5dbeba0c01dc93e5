"""F25: what a document cannot say does not reach the API server, which is the witness; and it would refuse it, too."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Namespace
from jobs import dispatch
from jobs.cluster.manifests import render
from jobs.cluster.port import ObjectRef
from jobs.form.posted import TEXTS
from jobs.models import Cluster, Job
from jobs.parsing import FIELDS
from tests.cast import PASSWORD
from tests.cluster.connected import ALICE, STORE, Hall, hall, person
from tests.jobs.yard import rendering

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
__all__ = ["hall"]

MARK = "cadmium-mutant"
LEAST = {"namespace": "vision", "runtime": "shell", "command": "true"}
# Where people put fields of Kubernetes into documents of other portals.
PLACES = ("", "resources", "pod", "spec", "template", "patch", "charts", "code")
# Which fields of Kubernetes give power; the rest of its schema is tried at the top.
POWER = (
    "hostPath hostNetwork hostPID hostIPC securityContext serviceAccountName nodeName initContainers volumes".split()
)


@pytest.fixture
def project(hall: Hall, world: None, vision: Any, settings: Any) -> Namespace:
    settings.KUBERNETES_CLUSTERS, settings.HAS_LOCAL_CLUSTER = (hall.setting,), False
    Namespace.objects.filter(pk=vision.pk).update(kubernetes_name=f"p-hostile-{uuid.uuid4().hex[:6]}")
    vision.refresh_from_db()
    nodes = [{"name": "n1", "gpus": 8, "gpu_type": "H200", "cpu_millis": 64000, "memory_bytes": 2**38, "ready": True}]
    Cluster.objects.all().delete()
    Cluster.objects.create(name="gpu", kind="kubernetes", nodes=nodes, seen_at=timezone.now())
    hall.made.append(vision.kubernetes_name)
    return vision


@pytest.fixture
def alice_signed_in(project: Namespace) -> Client:
    client = Client()
    assert client.login(username="alice", password=PASSWORD)
    return client


def schema(hall: Hall) -> list[str]:
    """Every field that a pod, a container, their security and a Job may have, as this API server says it."""
    found: set[str] = set()
    for path, kinds in (
        (
            "/openapi/v3/api/v1",
            ["PodSpec", "Container", "SecurityContext", "PodSecurityContext", "Volume", "EnvFromSource"],
        ),
        ("/openapi/v3/apis/batch/v1", ["JobSpec"]),
    ):
        said = hall.kubectl("get", "--raw", path)
        assert said.ok, said.text
        schemas = json.loads(said.text)["components"]["schemas"]
        for name, body in schemas.items():
            if name.rpartition(".")[2] in kinds:
                found |= body["properties"].keys()
    return sorted(found)


def mutations(hall: Hall) -> Iterator[tuple[str, Any]]:
    fields = [field for field in schema(hall) if field not in FIELDS]
    assert len(fields) > 100, fields
    for field in fields:
        yield f"top: {field}", {**LEAST, field: {"name": MARK, "value": MARK}}
    for place in PLACES[1:]:
        for field in POWER:
            inner = {"workers": 1} if place == "resources" else {"files": {"a.py": ""}} if place == "code" else {}
            yield f"{place}: {field}", {**LEAST, place: {**inner, field: MARK}}
    for name, value in (
        ("volumes", [{"name": MARK, "hostPath": {"path": "/"}}]),
        ("volumes", [{"name": "x", "path": "/x", "hostPath": MARK}]),
        ("volumes", [{"name": f"../{MARK}", "path": "/x"}]),
        ("volumes", [{"name": MARK, "path": "/var/run/secrets/../.."}]),
        ("volumes", {"hostPath": MARK}),
        ("image", {"name": MARK}),
        ("image", [MARK]),
        ("image", f"{MARK}\nhostNetwork: true"),
        ("name", f"{MARK}\nspec:\n  hostPID: true\u0000"),
        ("env", {"JOB_COMPLETION_INDEX": MARK}),
        ("env", {"TRAINHALL_TOKEN_FILE": MARK}),
        ("env", [{"name": MARK, "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}]),
        ("env", {MARK: "x"}),
        ("env", {"X": {"valueFrom": {"secretKeyRef": {"name": MARK}}}}),
        ("env", {"X=Y\nZ": MARK}),
        ("secrets", {"X": {"from": f"../kube-system/{MARK}"}}),
        ("secrets", {"X": {"from": MARK, "key": "token"}}),
        ("secrets", {"X": {"from": "j-7f3k2p9m4x-1", "key": "token"}}),
        ("secrets", {"X": {"value": MARK, "from": "x"}}),
        ("secrets", {"X": {"valueFrom": MARK}}),
        ("secrets", {"TRAINHALL_TOKEN": {"value": MARK}}),
        ("priority", "system-node-critical"),
        ("priority", "challenge"),
        ("priority", f"high\n{MARK}"),
        ("priority", {"name": MARK}),
        ("launcher", f"plain; {MARK}"),
        ("launcher", {"image": MARK}),
        ("stop_grace", 301),
        ("stop_grace", "1d"),
        ("time_limit", "9999d"),
        ("retries", -1),
        ("resources", {"workers": 0}),
        ("resources", {"workers": 10**6}),
        ("resources", {"gpus": -1}),
        ("resources", {"gpus": "8"}),
        ("resources", {"limits": {"nvidia.com/gpu": 8}}),
        ("resources", {"gpu_type": f"{MARK},node-role.kubernetes.io/control-plane="}),
        ("resources", {"memory": "-1Gi"}),
        ("resources", {"cpus": "1e99"}),
        ("resources", [MARK]),
        ("command", [MARK]),
        ("command", {"image": MARK}),
        ("command", ""),
        ("parameters", {"a b": MARK}),
        ("parameters", {"x": {"y": MARK}}),
        ("tags", {"x": MARK}),
        ("tags", [f"{MARK}\u0000"]),
        ("namespace", "kube-system"),
        ("namespace", "../speech"),
        ("namespace", "speech"),
        ("namespace", ["vision"]),
        ("runtime", MARK),
        ("runtime", {"image": MARK}),
        ("code", {"files": {"../../etc/passwd": MARK}}),
        ("code", {"files": {"/etc/passwd": MARK}}),
        ("code", {"git": f"file:///{MARK}"}),
        ("code", {"git": "https://127.0.0.1:6443/api"}),
        ("code", {"git": "ext::sh -c id"}),
        ("code", {"upload": f"{MARK}"}),
        ("notify", [MARK]),
        ("preemptible", MARK),
    ):
        yield f"{name}: {str(value)[:60]}", {**LEAST, name: value}
    for text in (
        f"namespace: vision\nruntime: shell\ncommand: 'true'\n---\nkind: Pod\nspec: {{nodeName: {MARK}}}\n",
        f"namespace: vision\nruntime: shell\ncommand: !!python/object/apply:os.system ['{MARK}']\n",
        f"namespace: vision\nruntime: shell\ncommand: &a {MARK}\nname: *a\n",
        f"namespace: vision\nruntime: shell\ncommand: a\ncommand: {MARK}\n",
        f"<<: {{hostNetwork: {MARK}}}\nnamespace: vision\nruntime: shell\ncommand: a\n",
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {MARK}}}\n",
        "a: " + "[" * 500 + "]" * 500,
    ):
        yield f"yaml: {text[:60]!r}", text


def test_two_hundred_documents_and_none_reaches_the_api_server(
    hall: Hall, project: Namespace, alice_signed_in: Client
) -> None:
    tried = list(mutations(hall))
    assert len(tried) >= 200
    for what, body in tried:
        kind = "application/yaml" if isinstance(body, str) else "application/json"
        text = body if isinstance(body, str) else json.dumps(body)
        answer = alice_signed_in.post("/api/v1/jobs/", text, content_type=kind)
        assert 400 <= answer.status_code < 500, f"{what}: {answer.status_code} {answer.content[:300]!r}"
    assert not Job.objects.exists()
    assert dispatch.admit_waiting() == []
    assert hall.audited(project.kubernetes_name) == []  # not even its namespace was made


def test_fields_added_to_the_form_change_nothing_of_what_is_created(
    hall: Hall, project: Namespace, alice_signed_in: Client
) -> None:
    """A form sends what it sends; what it has no field for is not looked at, and nothing of it is passed on."""
    typed = {"namespace": "vision", "runtime": "shell", "command": "true", "code_kind": "none", "priority": "normal"}
    added = {field: MARK for field in schema(hall) if field not in (*FIELDS, *TEXTS)}
    added |= {f"spec.{field}": MARK for field in POWER}
    added |= {
        "spec": json.dumps({"hostNetwork": MARK}),
        "securityContext[runAsUser]": "0",
    }
    answer = alice_signed_in.post("/jobs/new/", typed | added)
    assert answer.status_code == 302, answer.content.decode()[-3000:]
    (attempt,) = dispatch.admit_waiting()
    dispatch.launch(attempt)
    job = Job.objects.get()
    made = [one for one in hall.audited(project.kubernetes_name) if one["verb"] == "create"]
    assert "jobs" in {one["objectRef"]["resource"] for one in made}, (job.status, job.reason)
    assert MARK not in json.dumps(made)
    (stored,) = hall.get("jobs", "-n", project.kubernetes_name)["items"]
    assert MARK not in json.dumps(stored)
    assert stored["metadata"]["annotations"]["trainhall.io/created-by"] == "trainhall:local:alice"
    spec = stored["spec"]["template"]["spec"]
    assert not any(spec.get(field) for field in ("hostNetwork", "hostPID", "hostIPC", "nodeName"))
    assert spec["serviceAccountName"] == "trainhall-job" and spec["automountServiceAccountToken"] is False


def test_dave_is_not_told_that_there_is_a_vision_and_nothing_is_asked_of_the_cluster(
    hall: Hall, project: Namespace
) -> None:
    dave = Client()
    assert dave.login(username="dave", password=PASSWORD)
    said = [
        dave.post("/api/v1/jobs/", json.dumps({**LEAST, "namespace": name}), content_type="application/json")
        for name in ("vision", "no-such-thing")
    ]
    assert [one.status_code for one in said] == [422, 422]
    first, second = (one.json()["error"]["message"] for one in said)
    assert first.replace("vision", "X") == second.replace("no-such-thing", "X")
    assert dave.get("/api/v1/namespaces/vision/").status_code == 404
    assert hall.audited(project.kubernetes_name) == []


def test_with_our_own_check_out_of_the_way_the_cluster_refuses(hall: Hall) -> None:
    """A Job's template is stored whatever it says; its pods are refused, and the Job says so."""
    place = hall.namespace()
    objects = render(
        rendering("id", job_id="h" * 10, kubernetes_namespace=place.name, identity=(ALICE, 20000, (STORE,)))
    )
    spec = objects.leader["spec"]["template"]["spec"]
    spec["hostNetwork"] = True
    spec["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
    spec["containers"][0]["securityContext"]["privileged"] = True
    spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    until(lambda: hall.as_user("alice", "auth", "can-i", "create", "jobs", "-n", place.name).ok)
    uid = hall.cluster.create(objects, person=person("alice"))
    ref = ObjectRef(place.name, objects.leader["metadata"]["name"], uid)
    hall.cluster.release(ref)
    said = until(
        lambda: [one for one in hall.get("events", "-n", place.name)["items"] if one["reason"] == "FailedCreate"]
    )
    message = said[0]["message"]
    assert 'violates PodSecurity "restricted' in message
    for word in ("hostNetwork", "hostPath", "privileged"):
        assert word in message
    assert hall.get("pods", "-n", place.name)["items"] == []


def until(ask: Any, *, patience: float = 20.0) -> Any:
    end = time.monotonic() + patience
    while not (answer := ask()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)
    return answer
