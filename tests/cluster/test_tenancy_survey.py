"""What an admin applied before, or changed since, is looked at and told with the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from jobs import surveys
from jobs.cluster.kubernetes.survey import survey
from jobs.models import Cluster
from tests.cast import PASSWORD
from tests.cluster.connected import Hall, hall

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
__all__ = ["hall"]


@pytest.fixture
def gpu(hall: Hall, settings: Any) -> Iterator[Cluster]:
    settings.KUBERNETES_CLUSTERS = (hall.setting,)
    cluster = Cluster.objects.create(name="gpu", kind="kubernetes")
    yield cluster
    # the command of the page, typed as it stands there
    cluster.refresh_from_db()
    for command in surveys.mend(cluster.survey.get("changed", [])).split(" && "):
        said = hall.kubectl(*command.split()[1:])
        assert said.ok, said.text
    assert surveys.look() == 0


def test_a_cluster_that_was_just_connected_lacks_nothing(hall: Hall, gpu: Cluster) -> None:
    assert surveys.look() == 0
    gpu.refresh_from_db()
    assert gpu.survey["version"].startswith("v1.")
    assert gpu.survey["accounts"] == {
        "portal": "system:serviceaccount:trainhall-system:trainhall",
        "watcher": "system:serviceaccount:trainhall-system:trainhall-watcher",
        "sync": "system:serviceaccount:trainhall-system:trainhall-admin-sync",
    }
    assert gpu.survey["wrong"] == []
    assert gpu.survey["capabilities"].keys() <= {
        "resource.k8s.io",
        "scheduling.k8s.io",
        "jobset.x-k8s.io",
        "kueue.x-k8s.io",
    }


CHANGES = {
    "a role that may more": (
        ["patch", "clusterrole", "trainhall-member", "--type=json", "-p",
         '[{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}}]'],
        "ClusterRole trainhall-member is not as it is shipped: rules.",
    ),
    "a policy gone": (
        ["delete", "validatingadmissionpolicy", "trainhall-own-identity"],
        "ValidatingAdmissionPolicy trainhall-own-identity is missing.",
    ),
    "a policy that only warns": (
        ["patch", "validatingadmissionpolicybinding", "trainhall-release-guard", "--type=merge", "-p",
         '{"spec": {"validationActions": ["Warn"]}}'],
        "ValidatingAdmissionPolicyBinding trainhall-release-guard is not as it is shipped: spec.",
    ),
    "a policy with a way around": (
        ["patch", "validatingadmissionpolicy", "trainhall-attempt-secrets", "--type=merge", "-p",
         '{"spec": {"matchConditions": [{"name": "x", "expression": "request.userInfo.username != \'ldap:bob\'"}]}}'],
        "ValidatingAdmissionPolicy trainhall-attempt-secrets is not as it is shipped: spec.",
    ),
    "no mutating policy": (
        ["delete", "mutatingadmissionpolicybinding", "trainhall-force-suspend"],
        "MutatingAdmissionPolicyBinding trainhall-force-suspend is missing.",
    ),
    "a priority gone": (["delete", "priorityclass", "trainhall-high"], "PriorityClass trainhall-high is missing."),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_told(hall: Hall, gpu: Cluster, what: str) -> None:
    words, told = CHANGES[what]
    said = hall.kubectl(*words)
    assert said.ok, said.text
    assert surveys.look() == 1
    gpu.refresh_from_db()
    assert gpu.survey["wrong"] == [told]


def test_an_account_that_was_made_mightier_is_told(hall: Hall, gpu: Cluster) -> None:
    binding = ["clusterrolebinding", "test-too-much"]
    account = "--serviceaccount=trainhall-system:trainhall"
    assert hall.kubectl("create", *binding, "--clusterrole=cluster-admin", account).ok
    try:
        found = survey(hall.setting, [])
    finally:
        assert hall.kubectl("delete", *binding).ok
    assert found.wrong == [
        "The account of the portal may read the Secrets of kube-system: it has more than deploy/kubernetes gives it."
    ]


def test_the_page_is_for_operators_and_says_the_command(gpu: Cluster, admin: Any, alice: Any) -> None:
    Cluster.objects.filter(pk="gpu").update(
        survey={
            "version": "v1.36.3",
            "accounts": {"portal": "x"},
            "capabilities": {},
            "wrong": ["ClusterRole y is missing."],
        }
    )
    admin.site_role = "admin"
    admin.save()
    operator, member = Client(), Client()
    assert operator.login(username="admin", password=PASSWORD) and member.login(username="alice", password=PASSWORD)
    page = operator.get("/admin/clusters/").content.decode()
    assert "ClusterRole y is missing." in page
    assert "kubectl apply --server-side --force-conflicts -f deploy/kubernetes/" in page
    assert "v1.36.3" in page
    assert member.get("/admin/clusters/").status_code == 403
    assert operator.post("/admin/clusters/").status_code == 302
