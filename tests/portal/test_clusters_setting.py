"""TRAINHALL_CLUSTERS: what is wrong is named, with its place and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobs.cluster.kubernetes.setting import TOPOLOGY, Account, Users
from jobs.cluster.port import Person
from portal.settings.clusters import read_clusters

WHOLE = """
- name: local
- name: gpu
  kubeconfig: {kubeconfig}
  context: trainhall
  watcher: {{context: trainhall-watcher}}
  sync: {{context: trainhall-admin-sync}}
  user_prefix: "corp:"
  runs: /srv/{{namespace}}/runs
  internal_url: http://10.0.0.7:8000/
  storage: [10.20.0.0/16]
  namespaces: [vision]
- name: inside
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "gpu.kubeconfig"
    path.write_text("{}")
    return path


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "clusters.yaml"
    path.write_text(text)
    return str(path)


def test_nothing_and_local_need_no_file() -> None:
    assert read_clusters("") == (False, ())
    assert read_clusters("local") == (True, ())


def test_a_file_names_clusters_in_order(tmp_path: Path, kubeconfig: Path) -> None:
    has_local, (gpu, inside) = read_clusters(written(tmp_path, WHOLE.format(kubeconfig=kubeconfig)))

    assert has_local
    assert (gpu.name, gpu.namespaces, gpu.storage) == ("gpu", ("vision",), ("10.20.0.0/16",))
    assert gpu.portal == Account(str(kubeconfig), "trainhall")
    assert gpu.watcher == Account(str(kubeconfig), "trainhall-watcher")
    assert gpu.internal_url == "http://10.0.0.7:8000"
    assert inside.portal == inside.watcher == Account(), "without a kubeconfig: the pod's own account"


def test_where_nodes_stand_is_known_without_saying_and_may_be_said(tmp_path: Path) -> None:
    said = "topology: [example.org/switch], tolerations: [{key: gpu, operator: Exists}]"
    text = f"- name: a\n- name: c\n  topology: []\n- {{name: b, {said}}}"
    _has_local, (a, c, b) = read_clusters(written(tmp_path, text))
    assert (a.topology, b.topology, c.topology) == (TOPOLOGY, ("example.org/switch",), ())
    assert (a.tolerations, b.tolerations) == ((), ({"key": "gpu", "operator": "Exists"},))
    assert {a: 1, b: 2}[b] == 2, "clusters are remembered by their setting"


def test_who_is_in_no_directory_is_never_taken_for_one_of_it() -> None:
    users = Users()
    assert users.name(Person("alice", source="ldap")) == "ldap:alice"
    assert users.name(Person("alice", source="local")) == "trainhall:local:alice"
    assert users.groups(Person("alice", groups=("vision",), source="ldap")) == ["ldap:vision"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing: here", "must be a list of clusters"),
        ("[]", "must be a list of clusters"),
        ("- name: [", "is not YAML"),
        ("- gpu", "cluster 1 must be fields"),
        ("- name: GPU", "needs a `name`"),
        ("- {}", "needs a `name`"),
        ("- name: gpu\n- name: gpu", "more than one cluster called gpu"),
        ("- name: gpu\n  contxt: a", "knows no field contxt"),
        ("- name: gpu\n  kubeconfig: /nowhere/at/all", "names a kubeconfig that is not there"),
        ("- name: gpu\n  context: 3", "a context that is no text"),
        ("- name: gpu\n  watcher: a", "watcher must be fields"),
        ("- name: gpu\n  runs: srv/runs", "needs an absolute path"),
        ("- name: gpu\n  runs: /srv/runs", "{namespace}"),
        ("- name: gpu\n  storage: [10.20.0.1/16]", "a network in storage"),
        ("- name: gpu\n  namespaces: vision", "needs a list of texts as namespaces"),
        ("- name: local\n  context: a", "takes no other field"),
        ("- name: gpu\n  topology: [a rack]", "a topology with a name that no label can have: 'a rack'"),
        ("- name: gpu\n  tolerations: {key: a}", "needs a list as tolerations"),
        ("- name: gpu\n  tolerations: [{operator: Exists}, {key: a, operator: In}]", "toleration 2 has an operator"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="TRAINHALL_CLUSTERS") as raised:
        read_clusters(written(tmp_path, text))
    assert words in str(raised.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ImproperlyConfigured, match="TRAINHALL_CLUSTERS is neither"):
        read_clusters("/nowhere/clusters.yaml")
