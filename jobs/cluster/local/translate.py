"""From a pod of the manifest to a process of this machine: what `/workspace` and `$(NAME)` mean here. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Pod = dict[str, Any]

_REFERENCE = re.compile(r"\$(?:(\$)|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_INDEX_PATH = "metadata.labels['batch.kubernetes.io/job-completion-index']"


class SecretMissing(Exception):
    """A value is to come from a secret that this cluster does not have."""


def expand(text: str, known: Mapping[str, str]) -> str:
    """Kubernetes' expansion: `$(NAME)` if known, `$$` is one `$`, everything else stays."""

    def replaced(match: re.Match[str]) -> str:
        dollar, name = match.groups()
        return "$" if dollar else known.get(name, match.group())

    return _REFERENCE.sub(replaced, text)


def mounts_of(container: Pod, folders: Mapping[str, str]) -> dict[str, str]:
    """Mount path to folder, the longest path first. A volume without a folder, like /dev/shm, is the machine's own."""
    found = {
        mount["mountPath"].rstrip("/"): folders[mount["name"]]
        for mount in container.get("volumeMounts", ())
        if mount["name"] in folders
    }
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def translate_path(path: str, mounts: Mapping[str, str]) -> str:
    for mount, folder in mounts.items():
        if path == mount or path.startswith(mount + "/"):
            return folder + path[len(mount) :]
    return path


def translate_value(value: str, mounts: Mapping[str, str]) -> str:
    """Every absolute path of a `:`-separated value that lies in a mount."""
    if "/" not in value:
        return value
    return ":".join(translate_path(part, mounts) for part in value.split(":"))


def environment(
    container: Pod,
    *,
    index: int,
    mounts: Mapping[str, str],
    secret_name: str,
    secrets: Mapping[str, str],
    service: str,
    ports: Mapping[str, Mapping[str, int]],
) -> dict[str, str]:
    """The container's variables as a process here gets them.

    Pods of one job find each other on this machine: host names of the Service become loopback, and each port of each pod
    one of the machine's own (`ports`, by host name), so that no two meet on it. A port that stands alone is the first worker's.
    """
    result: dict[str, str] = {}
    host = re.compile(rf"\b({re.escape(service)}(?:-[a-z]+)?-\d+)\.{re.escape(service)}\b(?::(\d+))?")
    meeting = ports.get(f"{service}-worker-0") or ports.get(f"{service}-0") or {}

    def here(match: re.Match[str]) -> str:
        name, port = match.groups()
        return "127.0.0.1" if port is None else f"127.0.0.1:{ports.get(name, {}).get(port, port)}"

    for entry in container.get("env", ()):
        name = entry["name"]
        if "valueFrom" in entry:
            result[name] = _from_source(entry["valueFrom"], index, secret_name, secrets)
            continue
        value = entry.get("value", "")
        if name.endswith("_PORT") and value in meeting:
            result[name] = str(meeting[value])
            continue
        # paths before references, which stand for values that were translated when they were defined
        result[name] = host.sub(here, expand(translate_value(value, mounts), result))
    return result


def command_of(container: Pod, environment: Mapping[str, str]) -> list[str]:
    return [expand(word, environment) for word in (*container.get("command", ()), *container.get("args", ()))]


def _from_source(source: Pod, index: int, secret_name: str, secrets: Mapping[str, str]) -> str:
    if "fieldRef" in source:
        path = source["fieldRef"]["fieldPath"]
        if path != _INDEX_PATH:
            raise ValueError(f"The local cluster knows no field {path}.")
        return str(index)
    wanted = source["secretKeyRef"]
    if wanted["name"] != secret_name:
        raise SecretMissing(
            f"The local cluster has no secret {wanted['name']!r} of the namespace; type the value instead."
        )
    if wanted["key"] not in secrets:
        raise SecretMissing(f"The secret {secret_name!r} has no key {wanted['key']!r}.")
    return secrets[wanted["key"]]
