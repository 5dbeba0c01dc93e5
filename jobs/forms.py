"""The form of a new job: flat fields of a browser, turned into the same document that REST takes, and back."""

from __future__ import annotations

import json
import unicodedata
import uuid
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from accounts.models import User
from jobs import archives
from jobs.exceptions import UploadError
from jobs.models import Job
from jobs.reading import Document, document_of, read_document

TEXTS = (
    "namespace name runtime code_kind script_name script git_url git_ref command workers gpus gpu_type cpus memory shm "
    "launcher priority time_limit retries stop_grace tags idempotency_key upload_sha256 upload_label"
).split()
PAIRS = ("param", "env")
NUMBERS = ("workers", "gpus", "retries")

# where an error of the document belongs on the form
FIELD_OF = {
    "parameters": "param",
    "env": "env",
    "secrets": "secret",
    "code.files": "script",
    "code.upload": "code_files",
    "code.git": "git_url",
    "code.ref": "git_ref",
    "code": "script",
    "resources": "workers",
}


def blank(user: User, *, namespace: str) -> dict[str, Any]:
    """What the form shows at first; empty fields mean "what the runtime says"."""
    return {
        **dict.fromkeys(TEXTS, ""),
        "namespace": namespace,
        "code_kind": "files",
        "script_name": "train.py",
        "workers": "1",
        "gpus": "0",
        "priority": "normal",
        "idempotency_key": f"form-{uuid.uuid4()}",
        "param": [],
        "env": [],
        "secret": [],
    }


def of_job(job: Job) -> dict[str, Any]:
    """The form filled with what another job asked for; secrets keep their names only."""
    spec = job.parsed
    sent = document_data(job)
    code = sent.get("code") or {}
    files = code.get("files") or {}
    one = next(iter(files.items())) if len(files) == 1 else None
    archived = job.code if not one and spec.code.kind != "git" else None
    return {
        **blank(job.owner, namespace=spec.namespace),
        "name": f"{spec.name}-2"[:200],
        "runtime": spec.runtime,
        "code_kind": spec.code.kind if one or spec.code.kind in ("git", "none") else "upload",
        "script_name": one[0] if one else "train.py",
        "script": one[1] if one else "",
        "upload_sha256": archived.sha256 if archived else "",
        "upload_label": _("%(count)d files of %(job)s") % {"count": archived.file_count, "job": job.name}
        if archived
        else "",
        "git_url": spec.code.git,
        "git_ref": spec.code.ref,
        "command": spec.command,
        "workers": str(spec.resources.workers),
        "gpus": str(spec.resources.gpus),
        "gpu_type": spec.resources.gpu_type,
        "cpus": f"{spec.resources.cpu_millis}m",
        "memory": f"{spec.resources.memory_bytes // 2**20}Mi",
        "shm": f"{spec.resources.shm_bytes // 2**20}Mi" if spec.resources.shm_bytes else "",
        "launcher": spec.launcher,
        "priority": spec.priority,
        "time_limit": f"{spec.time_limit}s",
        "retries": str(spec.retries),
        "stop_grace": f"{spec.stop_grace}s",
        "tags": ", ".join(spec.tags),
        "param": [{"name": name, "value": value} for name, value in spec.parameters.items()],
        "env": [{"name": name, "value": value} for name, value in spec.env.items()],
        "secret": [{"name": secret.name} for secret in spec.secrets],
    }


def document_data(job: Job) -> dict[str, Any]:
    return read_document(job.spec_text, format=job.spec_format).data


def typed(post: QueryDict) -> dict[str, Any]:
    """Everything that was typed, to be shown again; of secrets the names only."""
    values: dict[str, Any] = {name: post.get(name, "") for name in TEXTS}
    for pair in PAIRS:
        values[pair] = [{"name": name, "value": value} for name, value in _pairs(post, pair)]
    values["secret"] = [{"name": name} for name, _value in _pairs(post, "secret")]
    return values


def _pairs(post: QueryDict, prefix: str) -> list[tuple[str, str]]:
    names, values = post.getlist(f"{prefix}_name"), post.getlist(f"{prefix}_value")
    rows = zip(names, values + [""] * len(names), strict=False)
    return [(name.strip(), value) for name, value in rows if name.strip() or value]


def keep_uploads(request: HttpRequest, user: User, values: dict[str, Any]) -> dict[str, list[str]]:
    """Store files that came with the form, so that an error elsewhere does not lose them; errors by field."""
    files = request.FILES.getlist("code_files")
    if values["code_kind"] != "upload" or not files:
        return {}
    try:
        paths = json.loads(request.POST.get("paths") or "[]")
    except json.JSONDecodeError:
        paths = []
    names = [str(path) for path in paths] if isinstance(paths, list) and len(paths) == len(files) else []
    try:
        archive = archives.from_uploads(
            zip(names or [upload.name or "file" for upload in files], files, strict=True), user=user
        )
    except UploadError as error:
        return {"code_files": [error.message]}
    values["upload_sha256"] = archive.sha256
    values["upload_label"] = _("%(count)d files, sha256 %(digest)s") % {
        "count": archive.file_count,
        "digest": archive.sha256[:12],
    }
    return {}


def to_document(post: QueryDict, values: dict[str, Any]) -> Document:
    """The job document the form stands for; empty fields are left out, so the runtime fills them."""
    data: dict[str, Any] = {
        name: values[name].strip()
        for name in ("namespace", "name", "runtime", "launcher", "priority", "time_limit", "stop_grace")
        if values[name].strip()
    }
    # a browser sends CRLF, which a shell would hand on as a character of the last word
    data["command"] = values["command"].replace("\r\n", "\n")
    if values["retries"].strip():
        data["retries"] = _number(values["retries"])
    resources = {
        name: _number(values[name]) if name in NUMBERS else _narrow(values[name])
        for name in ("workers", "gpus", "gpu_type", "cpus", "memory", "shm")
        if values[name].strip()
    }
    if resources:
        data["resources"] = resources
    if code := _code(values):
        data["code"] = code
    if tags := [tag.strip() for tag in values["tags"].split(",") if tag.strip()]:
        data["tags"] = tags
    if parameters := {row["name"]: _scalar(row["value"]) for row in values["param"]}:
        data["parameters"] = parameters
    if env := {row["name"]: row["value"] for row in values["env"]}:
        data["env"] = env
    if secrets := {name: {"value": value} for name, value in _pairs(post, "secret")}:
        data["secrets"] = secrets
    return document_of(data)


def _code(values: dict[str, Any]) -> dict[str, Any]:
    kind = values["code_kind"]
    if kind == "files" and values["script"].strip():
        return {"files": {values["script_name"].strip() or "train.py": values["script"].replace("\r\n", "\n")}}
    if kind == "upload" and values["upload_sha256"]:
        return {"upload": values["upload_sha256"]}
    if kind == "git" and values["git_url"].strip():
        source = {"git": values["git_url"].strip()}
        return {**source, "ref": values["git_ref"].strip()} if values["git_ref"].strip() else source
    return {}


def _narrow(text: str) -> str:
    """Full-width digits, as an input method types them, are digits."""
    return unicodedata.normalize("NFKC", text).strip()


def _number(text: str) -> int | str:
    """A number, or the text as it is, about which the document's reader then says what is wrong."""
    narrow = _narrow(text)
    return int(narrow) if narrow.isascii() and narrow.isdecimal() and len(narrow) < 12 else narrow


def _scalar(text: str) -> str | int | float:
    for read in (int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        if str(value) == text:
            return value
    return text


def errors_by_field(fields: dict[str, list[str]]) -> dict[str, list[str]]:
    """Errors of a document, each at the field of the form that a person has to mend."""
    found: dict[str, list[str]] = {}
    for dotted, messages in fields.items():
        last = dotted.removeprefix("resources.")
        place = last if last in TEXTS else next((FIELD_OF[key] for key in FIELD_OF if dotted.startswith(key)), "")
        detail = dotted.partition(".")[2] if place in ("param", "env", "secret") else ""
        found.setdefault(place or "form", []).extend(f"{detail}: {text}" if detail else text for text in messages)
    return found
