"""Whatever reaches the API server in a managed namespace meets a second wall there, by kubectl, too (KUBERNETES 3.4)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from jobs.cluster.manifests import render as render_attempt
from jobs.cluster.port import Manifest, ObjectRef
from jobs.cluster.tenancy import Tenancy
from jobs.exceptions import ClusterForbids
from tests.cluster.connected import ALICE, BOB, STORE, Hall, hall, job, person, pod
from tests.jobs.yard import rendering

pytestmark = pytest.mark.cluster
__all__ = ["hall"]


@pytest.fixture(scope="module")
def vision(hall: Hall) -> Tenancy:
    """alice and bob are members; vera only looks; dave shares nothing."""
    wanted = hall.namespace()
    until(lambda: hall.as_user("bob", "auth", "can-i", "create", "pods", "-n", wanted.name).ok)
    return wanted


def until(ask: Callable[[], Any], *, patience: float = 20.0) -> Any:
    end = time.monotonic() + patience
    while not (answer := ask()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)
    return answer


def security(**fields: Any) -> Manifest:
    return {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}} | fields}


HOST = {"name": "host", "hostPath": {"path": "/"}}
ATTEMPT_SECRET = {"name": "x", "secret": {"secretName": "j-7f3k2p9m4x-1"}}
FROM_SECRET = {"name": "X", "valueFrom": {"secretKeyRef": {"name": "j-7f3k2p9m4x-1", "key": "token"}}}

# What a member's own pod may not ask for, and the words of the refusal.
REFUSED_PODS = {
    "another member's uid": (pod("x", security={"runAsUser": BOB, "runAsGroup": 20000}), "runAsUser must be 20123"),
    "a uid of nobody here": (pod("x", security={"runAsUser": 4711}), "runAsUser must be"),
    "root": (pod("x", security={"runAsUser": 0}), "runAs"),
    "another member's group": (pod("x", security={"runAsUser": ALICE, "runAsGroup": 20001}), "runAsGroup"),
    "a foreign supplemental group": (
        pod("x", security={"runAsUser": ALICE, "runAsGroup": 20000, "supplementalGroups": [4711]}),
        "supplementalGroups",
    ),
    "a foreign fsGroup": (pod("x", security={"runAsUser": ALICE, "runAsGroup": 20000, "fsGroup": 4711}), "fsGroup"),
    "a container that overrides": (pod("x", container=security(runAsUser=BOB)), "runAsUser"),
    "a host path": (pod("x", volumes=[HOST]), "hostPath"),
    "the host's network": (pod("x", hostNetwork=True), "hostNetwork"),
    "the host's processes": (pod("x", hostPID=True), "hostPID"),
    "a privileged container": (pod("x", container=security(privileged=True)), "privileged"),
    "added capabilities": (
        pod(
            "x",
            container={"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}}},
        ),
        "capabilities",
    ),
    "no seccomp profile": (pod("x", security={"seccompProfile": {"type": "Unconfined"}}), "seccomp"),
    "a foreign service account": (pod("x", serviceAccountName="trainhall"), "not found"),
    "GPUs beside the queue": (
        pod("x", container={"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1", "memory": "64Mi"}}}),
        "submitted through the portal",
    ),
    "the Secret of an attempt": (pod("x", volumes=[ATTEMPT_SECRET]), "Secret of an attempt"),
    "the same by the environment": (pod("x", container={"env": [FROM_SECRET]}), "Secret of an attempt"),
    "the same to fetch an image": (pod("x", imagePullSecrets=[{"name": "j-7f3k2p9m4x-1"}]), "Secret of an attempt"),
    "the priority of the challenge": (pod("x", priorityClassName="trainhall-challenge"), "exceeded quota"),
}


@pytest.mark.parametrize("what", REFUSED_PODS)
def test_a_pod_is_refused(hall: Hall, vision: Tenancy, what: str) -> None:
    body, words = REFUSED_PODS[what]
    said = hall.as_user("alice", "-n", vision.name, "create", "-f", "-", body=body)
    assert not said.ok
    assert words.lower() in said.text.lower()


REFUSED_JOBS = {
    "another member's uid": (job("x", security={"runAsUser": BOB}), "runAsUser must be 20123"),
    "another member's group": (job("x", security={"runAsUser": ALICE, "runAsGroup": 20001}), "runAsGroup"),
    "a container that overrides": (job("x", container=security(runAsUser=BOB)), "runAsUser"),
    "labels of the portal": (job("x", metadata={"labels": {"trainhall.io/job": "7f3k2p9m4x"}}), "set by the portal"),
    "an annotation of the portal": (job("x", metadata={"annotations": {"trainhall.io/x": "y"}}), "set by the portal"),
    "labels of the portal on its pods": (
        job("x", labels={"labels": {"trainhall.io/user": "bob"}}),
        "set by the portal",
    ),
    "the name of an attempt": (job("j-7f3k2p9m4x-1"), "given by the portal"),
    "priority high": (job("x", priorityClassName="trainhall-high"), "priority normal or low"),
    "more grace than there is": (job("x", terminationGracePeriodSeconds=301), "at most 300"),
}


@pytest.mark.parametrize("what", REFUSED_JOBS)
def test_a_job_by_kubectl_is_refused(hall: Hall, vision: Tenancy, what: str) -> None:
    body, words = REFUSED_JOBS[what]
    said = hall.as_user("alice", "-n", vision.name, "create", "-f", "-", body=body)
    assert not said.ok
    assert words.lower() in said.text.lower()


def test_a_pod_that_says_nothing_has_the_numbers_of_who_made_it(hall: Hall, vision: Tenancy) -> None:
    assert hall.as_user("alice", "-n", vision.name, "create", "-f", "-", body=pod("hers")).ok
    assert hall.as_user("bob", "-n", vision.name, "create", "-f", "-", body=pod("his")).ok
    assert hall.kubectl("-n", vision.name, "create", "-f", "-", body=pod("nobodys")).ok
    found = {one["metadata"]["name"]: one["spec"]["securityContext"] for one in pods(hall, vision)}
    assert numbers(found["hers"]) == (ALICE, 20000, [20000, STORE])
    assert numbers(found["his"]) == (BOB, 20001, [20001])
    assert numbers(found["nobodys"]) == (2_130_000_001, 2_130_000_001, [2_130_000_001])


def test_a_job_by_kubectl_waits_and_its_pods_have_the_numbers_of_who_made_it(hall: Hall, vision: Tenancy) -> None:
    at_once = job("eager", spec={"suspend": False}, metadata={"annotations": {"trainhall.io/created-by": "ldap:alice"}})
    assert hall.as_user("bob", "-n", vision.name, "create", "-f", "-", body=at_once).ok
    stored = hall.get("job/eager", "-n", vision.name)
    assert stored["spec"]["suspend"] is True
    assert stored["metadata"]["annotations"]["trainhall.io/created-by"] == "ldap:bob"
    for words in (
        ["patch", "job/eager", "--type=merge", "-p", '{"spec": {"suspend": false}}'],
        ["patch", "job/eager", "--type=merge", "-p", '{"spec": {"parallelism": 9}}'],
    ):
        said = hall.as_user("bob", "-n", vision.name, *words)
        assert not said.ok
        assert "cannot patch resource" in said.text
    hall.cluster.release(ObjectRef(vision.name, "eager"))
    made = until(lambda: [one for one in pods(hall, vision) if one["metadata"]["name"].startswith("eager")])
    assert numbers(made[0]["spec"]["securityContext"]) == (BOB, 20001, [20001])


def test_who_may_patch_jobs_may_still_neither_start_nor_resize_one(hall: Hall, vision: Tenancy) -> None:
    """The second wall behind the role: an admin of the cluster is under the policies, too."""
    assert hall.as_user("alice", "-n", vision.name, "create", "-f", "-", body=job("still")).ok
    for change, words in (
        ({"spec": {"suspend": False}}, "start suspended"),
        ({"spec": {"parallelism": 9}}, "changed through the portal"),
        ({"spec": {"backoffLimit": 9}}, "changed through the portal"),
        ({"metadata": {"labels": {"trainhall.io/job": "x"}}}, "set by the portal"),
        ({"metadata": {"annotations": {"trainhall.io/created-by": "ldap:bob"}}}, "set by the portal"),
    ):
        said = hall.kubectl("-n", vision.name, "patch", "job/still", "--type=merge", "-p", json.dumps(change))
        assert not said.ok, change
        assert words in said.text


def test_a_secret_of_an_attempt_is_for_its_own_pods(hall: Hall, vision: Tenancy) -> None:
    objects = render_attempt(rendering("id", kubernetes_namespace=vision.name, identity=(ALICE, 20000, (STORE,))))
    uid = hall.cluster.create(objects, person=person("alice"))
    ref = ObjectRef(vision.name, objects.leader["metadata"]["name"], uid)
    thief = job("thief", volumes=[ATTEMPT_SECRET])
    assert hall.as_user("bob", "-n", vision.name, "create", "-f", "-", body=thief).ok
    hall.cluster.release(ref)
    hall.cluster.release(ObjectRef(vision.name, "thief"))
    until(lambda: [one for one in pods(hall, vision) if one["metadata"]["name"].startswith(ref.name)])
    said = until(lambda: events(hall, vision, "thief", "FailedCreate"))
    assert "Secret of an attempt" in said[0]["message"]
    assert [one for one in pods(hall, vision) if one["metadata"]["name"].startswith("thief")] == []


def test_the_portal_acting_for_a_person_creates_and_does_not_start(hall: Hall, vision: Tenancy) -> None:
    """Whatever it renders: as alice it may have no more than alice, but our own labels."""
    objects = render_attempt(
        rendering("id", job_id="c" * 10, kubernetes_namespace=vision.name, identity=(ALICE, 20000, (STORE,)))
    )
    uid = hall.cluster.create(objects, person=person("alice"))
    stored = hall.get(f"job/{objects.leader['metadata']['name']}", "-n", vision.name)
    assert stored["metadata"]["uid"] == uid
    assert stored["metadata"]["labels"]["trainhall.io/user"] == "alice"
    made = [
        one
        for one in hall.audited(vision.name)
        if one["verb"] == "create"
        and one["objectRef"]["resource"] == "jobs"
        and "c" * 10 in one["requestURI"] + str(one)
    ]
    assert {one["impersonatedUser"]["username"] for one in made} == {"ldap:alice"}
    assert {one["user"]["username"] for one in made} == {"system:serviceaccount:trainhall-system:trainhall"}
    assert {"ldap:vision"} <= set(made[0]["impersonatedUser"]["groups"])
    as_bob = render_attempt(
        rendering("id", job_id="d" * 10, kubernetes_namespace=vision.name, identity=(ALICE, 20000, ()))
    )
    with pytest.raises(ClusterForbids, match="runAsUser must be 20124"):
        hall.cluster.create(as_bob, person=person("bob"))


def test_dave_is_refused_and_the_audit_log_says_it_was_dave(hall: Hall, vision: Tenancy) -> None:
    objects = render_attempt(rendering("id", job_id="b" * 10, kubernetes_namespace=vision.name))
    with pytest.raises(ClusterForbids, match="dave"):
        hall.cluster.create(objects, person=person("dave"))
    with pytest.raises(ClusterForbids, match="vera"):
        hall.cluster.create(objects, person=person("vera"))
    asked = [one for one in hall.audited(vision.name) if one["responseStatus"]["code"] == 403]
    assert {one["impersonatedUser"]["username"] for one in asked if "impersonatedUser" in one} >= {
        "ldap:dave",
        "ldap:vera",
    }
    assert "j-" + "b" * 10 + "-1" not in [
        one["metadata"]["name"] for one in hall.get("jobs", "-n", vision.name)["items"]
    ]


def test_names_in_every_alphabet_reach_the_cluster_as_they_are(hall: Hall) -> None:
    wanted = hall.namespace(members=("ldap:山田太郎",), viewers=("ldap:山田太郎",))
    until(lambda: hall.as_user("山田太郎", "auth", "can-i", "create", "jobs", "-n", wanted.name).ok)
    objects = render_attempt(rendering("id", job_id="f" * 10, kubernetes_namespace=wanted.name))
    yamada = person("山田太郎")
    hall.cluster.create(objects, person=yamada)
    stored = hall.get("jobs", "-n", wanted.name)["items"][0]
    assert stored["metadata"]["annotations"]["trainhall.io/created-by"] == "ldap:山田太郎"


def test_an_archived_namespace_starts_nothing_new(hall: Hall) -> None:
    wanted = hall.namespace(is_archived=True, members=(), viewers=(), runners=())
    said = until(lambda: hall.kubectl("-n", wanted.name, "create", "-f", "-", body=pod("late")))
    assert not said.ok
    assert "exceeded quota" in said.text
    assert hall.get(f"namespace/{wanted.name}")["metadata"]["labels"]["trainhall.io/state"] == "archived"


def pods(hall: Hall, place: Tenancy) -> list[Manifest]:
    return list(hall.get("pods", "-n", place.name)["items"])


def events(hall: Hall, place: Tenancy, name: str, reason: str) -> list[Manifest]:
    found = hall.get("events", "-n", place.name)["items"]
    return [one for one in found if one["reason"] == reason and one["involvedObject"]["name"] == name]


def numbers(context: Manifest) -> tuple[int, int, list[int]]:
    return context["runAsUser"], context["runAsGroup"], context["supplementalGroups"]
