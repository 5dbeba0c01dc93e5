"""What other hands change in a namespace is put right by the next pass, kept on its row, and in the trail (KUBERNETES 3.2)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuditEvent, Membership, Namespace, User
from jobs import dispatch, submission, tenancy
from jobs.cluster.registry import connect
from jobs.exceptions import NotInLine, ObjectDiffers
from jobs.models import Cluster, ClusterNamespace
from jobs.reading import document_of
from jobs.states import JobStatus, Reason
from tests.cluster.connected import Hall, hall

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
__all__ = ["hall"]


@pytest.fixture
def project(hall: Hall, vision: Any, settings: Any) -> Namespace:
    """vision of alice, bob and carol, on the real cluster under a name of the test's own."""
    settings.KUBERNETES_CLUSTERS, settings.HAS_LOCAL_CLUSTER = (hall.setting,), False
    Namespace.objects.filter(pk=vision.pk).update(
        kubernetes_name=f"p-drift-{uuid.uuid4().hex[:6]}",
        gpu_limit=16,
        cpu_limit_millis=12_500,
        memory_limit_bytes=2**40,
    )
    # only this one: the others of the cast have none here
    Namespace.objects.exclude(pk=vision.pk).update(owner=None, kind="project")
    Namespace.objects.exclude(pk=vision.pk).delete()
    vision.refresh_from_db()
    Cluster.objects.create(name="gpu", kind="kubernetes")
    hall.made.append(vision.kubernetes_name)
    assert tenancy.keep() == 1
    return vision


def row() -> ClusterNamespace:
    return ClusterNamespace.objects.select_related("namespace").get()


def test_a_second_pass_changes_nothing(hall: Hall, project: Namespace) -> None:
    versions = everything(hall, project)
    assert tenancy.keep() == 0
    assert tenancy.follow_rights() == 0
    assert everything(hall, project) == versions
    kinds = {name.split("/")[0] for name in versions}
    assert kinds == {"ServiceAccount", "RoleBinding", "ResourceQuota", "LimitRange", "NetworkPolicy"}
    assert AuditEvent.objects.filter(action="namespace.apply", namespace="vision").count() == 1


DAVE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ldap:dave"}
DAVE_TOO = json.dumps([{"op": "add", "path": "/subjects/-", "value": DAVE}])
CHANGES = {
    "a label of the namespace": (["label", "namespace", "{ns}", "trainhall.io/kind-", "--overwrite"], "Namespace"),
    "who runs with which uid": (["annotate", "namespace", "{ns}", "trainhall.io/uids=0", "--overwrite"], "Namespace"),
    "pod security": (
        ["label", "namespace", "{ns}", "pod-security.kubernetes.io/enforce=privileged", "--overwrite"],
        "Namespace",
    ),
    "the account of pods": (
        ["-n", "{ns}", "patch", "serviceaccount", "trainhall-job", "-p", '{"automountServiceAccountToken": true}'],
        "ServiceAccount trainhall-job",
    ),
    "somebody in a binding": (
        ["-n", "{ns}", "patch", "rolebinding", "trainhall-members", "--type=json", "-p",
         DAVE_TOO],
        "RoleBinding trainhall-members",
    ),
    "a binding gone": (["-n", "{ns}", "delete", "rolebinding", "trainhall-workloads"], "RoleBinding trainhall-workloads"),
    "a quota raised": (
        ["-n", "{ns}", "patch", "quota", "trainhall-total", "-p", '{"spec": {"hard": {"requests.nvidia.com/gpu": "99"}}}'],
        "ResourceQuota trainhall-total",
    ),
    "a limit of theirs": (
        ["-n", "{ns}", "patch", "quota", "trainhall-total", "-p", '{"spec": {"hard": {"pods": "0"}}}'],
        "ResourceQuota trainhall-total",
    ),
    "GPUs in the limit range": (
        ["-n", "{ns}", "patch", "limitrange", "trainhall", "--type=json", "-p",
         '[{"op": "add", "path": "/spec/limits/0/max", "value": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "1Ti"}}]'],
        "LimitRange trainhall",
    ),
    "the network policy gone": (["-n", "{ns}", "delete", "networkpolicy", "trainhall-default"], "NetworkPolicy"),
    "the network policy opened": (
        ["-n", "{ns}", "patch", "networkpolicy", "trainhall-default", "--type=json", "-p",
         '[{"op": "add", "path": "/spec/ingress/-", "value": {}}]'],
        "NetworkPolicy trainhall-default",
    ),
    "a quota in the portal's name": (
        ["-n", "{ns}", "create", "-f", "-"], "ResourceQuota trainhall-theirs was removed",
    ),
}  # fmt: skip
THEIRS = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "1"}}}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_put_right(hall: Hall, project: Namespace, what: str) -> None:
    words, told = CHANGES[what]
    before = everything(hall, project, specs=True)
    labels = hall.get(f"namespace/{project.kubernetes_name}")["metadata"]["labels"]
    theirs = {"metadata": {"name": "trainhall-theirs", "labels": labels}} | THEIRS
    said = hall.kubectl(
        *(word.format(ns=project.kubernetes_name) if "{ns}" in word else word for word in words), body=theirs
    )
    assert said.ok, said.text
    assert tenancy.keep() == 1
    assert everything(hall, project, specs=True) == before
    found = row()
    assert [one for one in found.drift if told in one], found.drift
    assert len(found.drift) == 1
    assert found.is_drift_there
    assert found.drifted_at is not None
    event = AuditEvent.objects.get(action="namespace.drift")
    assert (event.via, event.actor, event.namespace) == ("system", "", "vision")
    assert event.after == {"found": found.drift}
    assert tenancy.keep() == 0
    assert not row().is_drift_there


def test_another_role_in_a_binding_is_made_anew(hall: Hall, project: Namespace) -> None:
    at = ["-n", project.kubernetes_name]
    assert hall.kubectl(*at, "delete", "rolebinding", "trainhall-viewers").ok
    assert hall.kubectl(*at, "create", "rolebinding", "trainhall-viewers", "--clusterrole=cluster-admin", "--user=x").ok
    assert tenancy.keep() == 1
    binding = hall.get("rolebinding/trainhall-viewers", *at)
    assert binding["roleRef"]["name"] == "trainhall-viewer"
    assert "x" not in [one["name"] for one in binding["subjects"]]


def test_a_binding_that_is_not_ours_is_told_once_and_left_alone(hall: Hall, project: Namespace) -> None:
    made = ["create", "rolebinding", "theirs", "--clusterrole=edit", "--user=ldap:dave"]
    assert hall.kubectl("-n", project.kubernetes_name, *made).ok
    for _look in range(3):
        assert tenancy.keep() == 1
    told = row().drift[0]
    assert "theirs is not the portal's and gives ldap:dave the role edit" in told
    assert f"kubectl -n {project.kubernetes_name} delete rolebinding theirs" in told
    assert hall.kubectl("-n", project.kubernetes_name, "get", "rolebinding", "theirs").ok
    assert AuditEvent.objects.filter(action="namespace.drift").count() == 1


def test_who_leaves_is_out_of_the_bindings_with_the_next_look(hall: Hall, project: Namespace, bob: User) -> None:
    def members() -> list[str]:
        binding = hall.get("rolebinding/trainhall-members", "-n", project.kubernetes_name)
        return [one["name"].rpartition(":")[2] for one in binding["subjects"]]

    assert members() == ["alice", "bob", "carol"]
    Membership.objects.filter(user=bob).delete()
    assert tenancy.follow_rights() == 1
    assert members() == ["alice", "carol"]
    assert row().drift == []  # a wish of ours is no drift
    User.objects.filter(username="alice").update(is_active=False)
    assert tenancy.follow_rights() == 1
    assert members() == ["carol"]
    assert tenancy.follow_rights() == 0


def test_a_namespace_of_somebody_else_is_left_alone_and_told(hall: Hall, project: Namespace) -> None:
    name = f"p-theirs-{uuid.uuid4().hex[:6]}"
    assert hall.kubectl("create", "namespace", name).ok
    hall.made.append(name)
    Namespace.objects.filter(pk=project.pk).update(kubernetes_name=name)
    assert tenancy.keep() == 0
    assert "does not say it is this portal's; it is left alone" in row().error
    assert "trainhall.io/managed" not in hall.get(f"namespace/{name}")["metadata"]["labels"]
    with pytest.raises(ObjectDiffers):
        tenancy.ensure(connect("gpu"), Cluster.objects.get(), Namespace.objects.get())


def test_a_namespace_that_is_being_deleted_is_waited_for(hall: Hall, project: Namespace) -> None:
    at = project.kubernetes_name
    pod = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "finalizers": ["trainhall.io/test"]}}
    assert hall.kubectl("-n", at, "create", "-f", "-", body=pod).ok
    assert hall.kubectl("delete", "namespace", at, "--wait=false").ok
    with pytest.raises(NotInLine, match="Somebody deletes the namespace"):
        connect("gpu").ensure_namespace(tenancy.objects_of(project, hall.setting))
    assert tenancy.keep() == 0
    assert "made anew once it is gone" in row().error
    assert hall.kubectl(
        "-n", at, "patch", "configmap", "x", "--type=merge", "-p", '{"metadata": {"finalizers": []}}'
    ).ok
    assert hall.kubectl("wait", "--for=delete", f"namespace/{at}", "--timeout=60s").ok
    assert tenancy.keep() == 1
    assert row().error == ""


def everything(hall: Hall, place: Namespace, *, specs: bool = False) -> dict[str, str]:
    """Each object of the portal there with its version, or with what is in it."""
    kinds = "serviceaccounts,rolebindings,resourcequotas,limitranges,networkpolicies"
    found = hall.get(kinds, "-n", place.kubernetes_name, "-l", "trainhall.io/instance")["items"]
    told = {}
    for one in [*found, *([hall.get(f"namespace/{place.kubernetes_name}")] if specs else [])]:
        metadata = one["metadata"]
        kept = {key: one.get(key) for key in ("spec", "subjects", "roleRef", "automountServiceAccountToken")}
        kept |= {"labels": metadata.get("labels"), "annotations": metadata.get("annotations")}
        told[f"{one['kind']}/{metadata['name']}"] = json.dumps(kept) if specs else metadata["resourceVersion"]
    return told


def test_a_refusal_right_after_rights_were_written_is_asked_again_and_then_believed(
    hall: Hall, project: Namespace, bob: User, priorities: None, shell_runtime: Any
) -> None:
    """An API server decides by what it has read a moment ago; a job must not be held for that."""
    nodes = [{"name": "n", "gpus": 0, "gpu_type": "", "cpu_millis": 64000, "memory_bytes": 2**38, "ready": True}]
    Cluster.objects.update(nodes=nodes, seen_at=timezone.now())
    document = document_of({"namespace": "vision", "runtime": "shell", "command": "id"})
    job = submission.submit(user=bob, document=document, request=None, origin="api").job
    (attempt,) = dispatch.admit_waiting()
    Membership.objects.filter(user=bob).delete()
    dispatch.launch(attempt)
    job.refresh_from_db()
    assert (job.status, job.reason_code) == (JobStatus.STARTING, Reason.WAITING_FOR_CLUSTER)
    assert "does not know of new rights yet" in job.reason
    ClusterNamespace.objects.update(applied_at=timezone.now() - tenancy.CAUGHT_UP)
    dispatch.launch(attempt)
    job.refresh_from_db()
    assert (job.status, job.reason_code, job.held_by) == (JobStatus.QUEUED, Reason.FORBIDDEN, bob)
    assert "does not let you create jobs" in job.reason
