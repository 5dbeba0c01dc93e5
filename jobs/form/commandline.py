"""A job document as the command that submits it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from jobs.form.fields import fields_of
from jobs.quoting import text_of

OPTIONS = {
    "namespace": "--namespace",
    "name": "--name",
    "runtime": "--runtime",
    "image": "--image",
    "launcher": "--launcher",
    "priority": "--priority",
    "time_limit": "--time-limit",
    "retries": "--retries",
    "stop_grace": "--stop-grace",
}
RESOURCES = {
    "workers": "--workers",
    "gpus": "--gpus",
    "gpu_type": "--gpu-type",
    "cpus": "--cpus",
    "memory": "--memory",
    "shm": "--shm",
    "parameter_servers": "--parameter-servers",
}
SPECIAL = ("code", "command", "resources", "parameters", "env", "secrets", "volumes", "tags", "notify", "preemptible")


def submit_line(data: Mapping[str, Any]) -> str:
    """`trainhall submit …` for a document; where an option is missing, the file of the document itself."""
    words = list(_words(data))
    if set(data) - set(OPTIONS) - set(SPECIAL) or any(word is None for word in words):
        return "trainhall submit job.yaml"
    return " ".join(["trainhall", "submit", *(shlex.quote(word) for word in words if word)])


def _words(data: Mapping[str, Any]) -> Iterator[str | None]:
    for field, option in OPTIONS.items():
        if data.get(field) not in (None, ""):
            yield option
            yield text_of(data[field])
    resources = data.get("resources")
    for field, value in resources.items() if isinstance(resources, Mapping) else ():
        yield RESOURCES.get(field)
        yield text_of(value)
    for field, option in (("parameters", "--param"), ("env", "--env")):
        entries = data.get(field)
        for name, value in entries.items() if isinstance(entries, Mapping) else ():
            yield option
            yield f"{name}={text_of(value)}"
    secrets = data.get("secrets")
    for name, entry in secrets.items() if isinstance(secrets, Mapping) else ():
        # one of the namespace is named in a document only
        yield None if isinstance(entry, Mapping) and "from" in entry else "--secret"
        yield str(name)
    if "volumes" in data:
        rows = (fields_of({"volumes": data["volumes"]}).get("volume") or []) if data["volumes"] else []
        yield None if not rows else ""
        for row in rows:
            yield "--volume"
            yield ":".join(part for part in (row["name"], row["value"].lstrip(":")) if part)
    for field, option in (("tags", "--tag"), ("notify", "--notify")):
        listed = data.get(field)
        for value in listed if isinstance(listed, list) else ():
            yield option
            yield str(value)
    if data.get("preemptible") is False:
        yield "--no-preemption"
    yield from _code(data.get("code"))
    yield "--"
    yield str(data.get("command", ""))


def _code(code: Any) -> Iterator[str | None]:
    if not isinstance(code, Mapping):
        return
    files = code.get("files")
    if isinstance(files, Mapping):
        # files in folders are one folder for the command
        for name in ["."] if any("/" in str(name) for name in files) else files:
            yield "--code"
            yield str(name)
    if "upload" in code:
        yield "--code"
        yield "."
    if "git" in code:
        yield "--git"
        yield str(code["git"])
        if code.get("ref"):
            yield "--ref"
            yield str(code["ref"])
