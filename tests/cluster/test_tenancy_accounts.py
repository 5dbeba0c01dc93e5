"""The portal's own accounts may do what a checked-in list says, and nothing beside it (F25)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jobs.cluster.tenancy import SYSTEM, Tenancy
from tests.cluster.connected import Hall, hall

pytestmark = pytest.mark.cluster
__all__ = ["hall"]
RIGHTS = Path(__file__).parents[1] / "data" / "kubernetes" / "rights.json"
ACCOUNTS = ("trainhall", "trainhall-watcher", "trainhall-admin-sync")


@pytest.fixture(scope="module")
def vision(hall: Hall) -> Tenancy:
    return hall.namespace()


def rights(hall: Hall, account: str, namespace: str) -> list[str]:
    """What `kubectl auth can-i --list` says, without what everybody who is signed in may do."""
    asked = hall.kubectl("auth", "can-i", "--list", "-n", namespace, account=account)
    anybody = hall.kubectl("--as", f"system:serviceaccount:{SYSTEM}:nobody", "auth", "can-i", "--list", "-n", namespace)
    assert asked.ok, asked.text
    assert anybody.ok, anybody.text
    common = {" ".join(line.split()) for line in anybody.text.splitlines()}
    return sorted({" ".join(line.split()) for line in asked.text.splitlines()} - common)


def test_the_accounts_may_do_what_the_list_says(hall: Hall, vision: Tenancy) -> None:
    found = {
        account: {
            "in a managed namespace": rights(hall, account, vision.name),
            "in any other": rights(hall, account, "kube-system"),
        }
        for account in ACCOUNTS
    }
    written = json.dumps(found, indent=2) + "\n"
    if os.environ.get("TRAINHALL_REWRITE"):
        RIGHTS.parent.mkdir(parents=True, exist_ok=True)
        RIGHTS.write_text(written)
    assert written == RIGHTS.read_text()


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ("trainhall", "get secrets"),
        ("trainhall", "list secrets"),
        ("trainhall", "patch secrets"),
        ("trainhall", "create jobs.batch"),
        ("trainhall", "create pods"),
        ("trainhall", "create pods --subresource=exec"),
        ("trainhall", "get pods --subresource=log"),
        ("trainhall", "create rolebindings.rbac.authorization.k8s.io"),
        ("trainhall", "impersonate serviceaccounts"),
        ("trainhall", "impersonate users"),
        ("trainhall-watcher", "get secrets"),
        ("trainhall-watcher", "delete pods"),
        ("trainhall-watcher", "patch jobs.batch"),
        ("trainhall-admin-sync", "get secrets"),
        ("trainhall-admin-sync", "create pods"),
        ("trainhall-admin-sync", "create jobs.batch"),
        ("trainhall-admin-sync", "delete persistentvolumeclaims"),
        ("trainhall-admin-sync", "delete namespaces"),
        ("trainhall-admin-sync", "escalate clusterroles.rbac.authorization.k8s.io"),
        ("trainhall-admin-sync", "patch clusterroles.rbac.authorization.k8s.io"),
        ("trainhall-admin-sync", "patch validatingadmissionpolicies.admissionregistration.k8s.io"),
    ],
)
def test_an_account_may_not(hall: Hall, vision: Tenancy, account: str, words: str) -> None:
    asked = hall.kubectl("auth", "can-i", *words.split(), "-n", vision.name, account=account)
    assert not asked.ok
    assert "no" in asked.text.splitlines(), asked.text


@pytest.mark.parametrize("place", ["kube-system", SYSTEM])
def test_the_portal_has_nothing_where_nothing_is_managed(hall: Hall, place: str) -> None:
    for words in ("get pods", "list jobs.batch", "delete jobs.batch", "create secrets", "create services"):
        assert not hall.kubectl("auth", "can-i", *words.split(), "-n", place, account="trainhall").ok, words


def test_the_portal_reads_no_secret_whatever_way_it_tries(hall: Hall, vision: Tenancy) -> None:
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary"}, "stringData": {"x": "cadmium-canary"}}
    assert hall.kubectl("-n", vision.name, "create", "-f", "-", body=made).ok
    for words in (
        ["get", "secret", "canary", "-o", "yaml"],
        ["get", "secrets", "-o", "yaml"],
        ["patch", "secret", "canary", "-p", "{}", "-o", "yaml"],
        ["--as", "ldap:alice", "get", "secret", "canary", "-o", "yaml"],
        ["--as", "system:kube-controller-manager", "get", "secret", "canary", "-o", "yaml"],
        ["--as", "x", "--as-group", "system:masters", "get", "secret", "canary", "-o", "yaml"],
    ):
        said = hall.kubectl("-n", vision.name, *words, account="trainhall")
        assert not said.ok, words
        assert "cadmium" not in said.text
        assert "Forbidden" in said.text or "forbidden" in said.text


def test_the_sync_gives_no_right_that_is_not_on_its_list(hall: Hall, vision: Tenancy) -> None:
    said = hall.kubectl(
        "-n", vision.name, "create", "rolebinding", "x", "--clusterrole=cluster-admin", "--user=ldap:dave",
        account="trainhall-admin-sync",
    )  # fmt: skip
    assert not said.ok
    assert "attempting to grant RBAC permissions not currently held" in said.text


def test_the_sync_writes_in_managed_namespaces_alone(hall: Hall, vision: Tenancy) -> None:
    sync = "trainhall-admin-sync"
    binding = ["create", "rolebinding", "x", "--clusterrole=trainhall-member", "--user=ldap:dave"]
    for words in (
        ["-n", "kube-system", *binding],
        ["-n", SYSTEM, *binding],
        ["-n", "kube-system", "create", "quota", "x", "--hard=pods=0"],
        ["label", "namespace", "kube-system", "trainhall.io/managed=true"],
        ["create", "namespace", "p-theirs"],
    ):
        said = hall.kubectl(*words, account=sync)
        assert not said.ok, words
        assert "namespaces that the portal has made" in said.text
    assert hall.kubectl("-n", vision.name, *binding, account=sync).ok


def test_nobody_but_the_portal_says_that_it_acts_for_a_person(hall: Hall, vision: Tenancy) -> None:
    """The extra `via` lifts the ban on the portal's labels, so only the portal's account may set it."""
    for account in ("trainhall-watcher", "trainhall-admin-sync"):
        said = hall.kubectl(
            "-n", vision.name, "--as", "ldap:alice", "--as-user-extra", "trainhall.io/via=portal", "get", "jobs",
            account=account,
        )  # fmt: skip
        assert not said.ok
        assert "cannot impersonate" in said.text
