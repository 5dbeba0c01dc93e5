"""TRAINHALL_CLUSTERS: nothing, `local`, or a YAML file with a list of clusters; a wrong entry stops the start and is named."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from jobs.cluster.kubernetes.setting import TOPOLOGY, Account, KubernetesSetting, Users
from jobs.cluster.taints import problem_of

LOCAL = "local"
NAME = "TRAINHALL_CLUSTERS"
_FIELDS = (
    "name kubeconfig context watcher sync user_prefix group_prefix runs runs_class internal_url helper_image storage topology "
    "tolerations "
    "namespaces"
).split()


def read_clusters(text: str) -> tuple[bool, tuple[KubernetesSetting, ...]]:
    """Whether there is the local cluster, and the others."""
    if text in ("", LOCAL):
        return text == LOCAL, ()
    path = Path(text).expanduser()
    try:
        document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{NAME} is neither `local` nor a file that can be read: {error}.") from error
    except YAMLError as error:
        raise ImproperlyConfigured(f"{NAME}: {path} is not YAML: {error}") from error
    if not isinstance(document, list) or not document:
        raise ImproperlyConfigured(f"{NAME}: {path} must be a list of clusters, such as `- name: gpu`.")
    found = [_cluster(entry, f"{path}, cluster {number}") for number, entry in enumerate(document, start=1)]
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ImproperlyConfigured(f"{NAME}: {path} has more than one cluster called {twice[0]}.")
    return LOCAL in names, tuple(one for one in found if one.name != LOCAL)


def _cluster(entry: Any, where: str) -> KubernetesSetting:
    if not isinstance(entry, dict):
        raise _wrong(where, "must be fields, such as `name: gpu`")
    if unknown := sorted(set(map(str, entry)) - set(_FIELDS)):
        raise _wrong(where, f"knows no field {unknown[0]}; there are {', '.join(_FIELDS)}")
    name = entry.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
        raise _wrong(where, "needs a `name` of small letters, digits and dashes")
    if name == LOCAL and len(entry) > 1:
        raise _wrong(where, "is the one on this machine, which takes no other field")
    portal = _account(entry, where, Account())
    return KubernetesSetting(
        name=name,
        portal=portal,
        watcher=_account(entry.get("watcher") or {}, f"{where}, watcher", portal),
        sync=_account(entry.get("sync") or {}, f"{where}, sync", portal),
        users=Users(_text(entry, "user_prefix", where, "ldap:"), _text(entry, "group_prefix", where, "ldap:")),
        runs=_folder(entry, where),
        runs_class=_text(entry, "runs_class", where),
        internal_url=_text(entry, "internal_url", where).rstrip("/"),
        helper_image=_text(entry, "helper_image", where),
        storage=_networks(entry, where),
        topology=_labels(entry, "topology", where) if "topology" in entry else TOPOLOGY,
        tolerations=_tolerations(entry, where),
        namespaces=tuple(_texts(entry, "namespaces", where)),
    )


def _account(entry: Any, where: str, otherwise: Account) -> Account:
    if not isinstance(entry, dict):
        raise _wrong(where, "must be fields, such as `context: trainhall-watcher`")
    kubeconfig = _text(entry, "kubeconfig", where, otherwise.kubeconfig)
    if kubeconfig and not Path(kubeconfig).expanduser().is_file():
        raise _wrong(where, f"names a kubeconfig that is not there: {kubeconfig}")
    return Account(
        str(Path(kubeconfig).expanduser()) if kubeconfig else "", _text(entry, "context", where, otherwise.context)
    )


def _text(entry: dict[str, Any], key: str, where: str, otherwise: str = "") -> str:
    value = entry.get(key, otherwise)
    if not isinstance(value, str):
        raise _wrong(where, f"has a {key} that is no text: {value!r}")
    return value


def _texts(entry: dict[str, Any], key: str, where: str) -> list[str]:
    value = entry.get(key) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _wrong(where, f"needs a list of texts as {key}, not {value!r}")
    return value


def _labels(entry: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Names of labels, as Kubernetes allows them."""
    names = _texts(entry, key, where)
    for name in names:
        if not re.fullmatch(
            r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", name
        ):
            raise _wrong(where, f"has a {key} with a name that no label can have: {name!r}")
    return tuple(names)


def _tolerations(entry: dict[str, Any], where: str) -> tuple[dict[str, Any], ...]:
    found = entry.get("tolerations") or []
    if not isinstance(found, list):
        raise _wrong(where, f"needs a list as tolerations, not {found!r}")
    for number, toleration in enumerate(found, start=1):
        if problem := problem_of(toleration):
            raise _wrong(f"{where}, toleration {number}", problem)
    return tuple(found)


def _networks(entry: dict[str, Any], where: str) -> tuple[str, ...]:
    networks = _texts(entry, "storage", where)
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise _wrong(where, f"has a network in storage that is none: {error}") from error
    return tuple(networks)


def _folder(entry: dict[str, Any], where: str) -> str:
    text = _text(entry, "runs", where)
    if text and (not Path(text).is_absolute() or "{namespace}" not in text):
        raise _wrong(where, f"needs an absolute path with {{namespace}} in it as runs, not {text!r}")
    return text


def _wrong(where: str, words: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{NAME}: {where} {words}.")
