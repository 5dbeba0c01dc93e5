"""The form of a new job as a browser sends it: what was typed, the document it stands for, and where its errors belong."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from accounts.models import User
from jobs import archives
from jobs.exceptions import SpecError, UploadError
from jobs.form import code_names
from jobs.form.dotenv import read_dotenv
from jobs.form.fields import Fields, data_of, extra_of, fields_of
from jobs.parsing import FIELDS, RESOURCE_FIELDS
from jobs.reading import MAX_YAML, Document, document_of, emptied, read_document
from jobs.yaml_text import merged, to_yaml

TEXTS = (
    "namespace name runtime code_kind script_name script git_url git_ref command workers gpus gpu_type cpus memory shm "
    "parameter_servers "
    "launcher priority cluster time_limit retries stop_grace tags upload_sha256 upload_label extra yaml written yaml_own parent "
    "env_text"
).split()
OF_THE_PAGE = ("idempotency_key", "draft")  # each page has its own
PAIRS = ("param", "env", "shared", "volume")
MAX_SCRIPT = 4 * 2**20  # bytes that may be pasted
INLINE = 64 * 2**10  # bytes of a script that its YAML still shows

# where an error of the document belongs on the form
FIELD_OF = {
    "parameters": "param",
    "env": "env",
    "secrets": "secret",
    "volumes": "volume",
    "code.files": "script",
    "code.upload": "code_files",
    "code.git": "git_url",
    "code.ref": "git_ref",
}
# errors of a whole mapping
FIELD_OF_WHOLE = {"code": "script", "resources": "workers"}


def blank(*, namespace: str) -> Fields:
    """What the form shows at first; empty fields mean "what the runtime says"."""
    return {
        **dict.fromkeys(TEXTS, ""),
        **fields_of({}),
        "namespace": namespace,
        "code_kind": "files",
        "script_name": "train.py",
        "written": "form",
        **of_a_new_page(),
    }


def of_a_new_page() -> Fields:
    return {"idempotency_key": f"form-{uuid.uuid4()}", "draft": ""}


def typed(post: QueryDict) -> Fields:
    """Everything that was typed, to be shown again; of secrets the names only."""
    values: Fields = {name: post.get(name, "") for name in (*TEXTS, *OF_THE_PAGE)}
    for pair in PAIRS:
        values[pair] = [{"name": name, "value": value} for name, value in pairs_of(post, pair)]
    values["secret"] = [{"name": name} for name, _value in pairs_of(post, "secret")]
    return values


def pairs_of(post: QueryDict, prefix: str) -> list[tuple[str, str]]:
    names, values = post.getlist(f"{prefix}_name"), post.getlist(f"{prefix}_value")
    rows = zip(names, values + [""] * len(names), strict=False)
    return [(name.strip(), value) for name, value in rows if name.strip() or value]


def keep_uploads(request: HttpRequest, user: User, values: Fields) -> dict[str, list[str]]:
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
    paths = code_names.first_of(archive)
    values["upload_label"] = _("%(count)d files (%(some)s), sha256 %(digest)s") % {
        "count": archive.file_count,
        "some": ", ".join(paths) + (", …" if archive.file_count > len(paths) else ""),
        "digest": archive.sha256[:12],
    }
    return {}


def document_in(values: Fields, *, secrets: list[tuple[str, str]]) -> Document:
    """The job document: the YAML as written where that was changed last, else what the fields stand for.

    Who has written YAML keeps its comments and order: the fields are put into that text. Raise SpecError.
    """
    size = len(values["script"].encode(errors="replace"))
    if values["code_kind"] == "files" and size > MAX_SCRIPT:
        raise _too_large(size)
    if values["written"] == "yaml":
        document = _with_secrets(_read_yaml(values["yaml"]), secrets)
        if "code" not in document.data and is_apart(values):
            code = data_of(values, secrets=[])["code"]
            return document_of({**document.data, "code": code})
        return document
    if values["env_text"].strip():
        pasted = read_dotenv(values["env_text"])
        kept = [row for row in values["env"] if row["name"] not in pasted]
        values["env"] = kept + [{"name": name, "value": value} for name, value in pasted.items()]
        values["env_text"] = ""
    data = data_of(values, secrets=secrets)
    if values["yaml_own"] and values["yaml"].strip() and not is_apart(values):
        # half-written YAML is told, not dropped: somebody wanted it
        _read_yaml(values["yaml"])
        text = merged(values["yaml"], without_secrets(data))
        if len(text.encode()) <= MAX_YAML:
            # errors are told at the fields, so without lines
            return replace(_with_secrets(read_document(text, format="yaml"), secrets), lines={})
    return document_of(data)


def _read_yaml(text: str) -> Document:
    try:
        return read_document(text, format="yaml")
    except SpecError as error:
        raise SpecError(error.message, fields={"yaml": [error.message]}) from error


def shown_yaml(values: Fields, document: Document) -> str:
    """The document for the YAML side of the form: without secret values, and without a script too large to read."""
    data = without_secrets(document.data)
    if is_apart(values):
        data.pop("code", None)
    if values["yaml_own"] and values["yaml"].strip():
        return merged(values["yaml"], data)
    return to_yaml([data])


def is_apart(values: Fields) -> bool:
    """A large script stays in its field; YAML that names no code means that one."""
    return values["code_kind"] == "files" and len(values["script"]) > INLINE


def without_secrets(data: dict[str, Any]) -> dict[str, Any]:
    if "secrets" not in data:
        return dict(data)
    hidden = emptied(data["secrets"])
    return {**data, "secrets": hidden} if hidden else {name: data[name] for name in data if name != "secrets"}


def secrets_in(document: Document) -> dict[str, str]:
    """Secret values that were typed into the text itself."""
    secrets = document.data.get("secrets")
    entries = secrets.items() if isinstance(secrets, dict) else ()
    return {str(name): str(entry["value"]) for name, entry in entries if isinstance(entry, dict) and entry.get("value")}


def _with_secrets(document: Document, secrets: list[tuple[str, str]]) -> Document:
    """Values typed in the form stand in for the empty ones of the YAML."""
    typed_values = dict(secrets)
    entries = document.data.get("secrets")
    if not isinstance(entries, dict):
        return document
    filled = {
        name: {**entry, "value": typed_values.get(str(name), "")}
        if isinstance(entry, dict) and set(entry) <= {"value"} and not entry.get("value")
        else entry
        for name, entry in entries.items()
    }
    return replace(document, data={**document.data, "secrets": filled})


def _too_large(size: int) -> SpecError:
    text = _("the script is %(size).1f MB; at most %(most)d MB may be pasted. Upload it as a file instead.") % {
        "size": size / 2**20,
        "most": MAX_SCRIPT // 2**20,
    }
    return SpecError(f"code.files: {text}", fields={"code.files": [text]})


def errors_by_field(fields: dict[str, list[str]]) -> dict[str, list[str]]:
    """Errors of a document, each at the field of the form that a person has to mend."""
    found: dict[str, list[str]] = {}
    for dotted, messages in fields.items():
        place, detail = _place_of(dotted)
        found.setdefault(place, []).extend(
            f"{detail}: {plain(text)}" if detail else sentence(text) for text in messages
        )
    return found


def _place_of(dotted: str) -> tuple[str, str]:
    """The field of the form, and what else must be said of the place; what has no field can only be in the YAML."""
    first, _dot, rest = dotted.partition(".")
    if dotted in ("yaml", "form"):
        return dotted, ""
    if dotted in FIELDS and dotted in TEXTS:
        return dotted, ""
    if first == "resources" and rest in RESOURCE_FIELDS:
        return rest, ""
    if dotted in FIELD_OF_WHOLE:
        return FIELD_OF_WHOLE[dotted], ""
    key = next((key for key in FIELD_OF if dotted == key or dotted.startswith((f"{key}.", f"{key}["))), "")
    # a secret has no dots in its name: what stands below it is an unknown field of its mapping
    if not key or (first == "secrets" and "." in rest):
        return "yaml", dotted
    place = FIELD_OF[key]
    if place == "volume":
        return place, dotted.removeprefix(key)
    return place, rest if place in ("param", "env", "secret") else ""


def plain(text: str) -> str:
    """Words meant for a terminal, as a page shows them."""
    return text.replace("`", "")


def sentence(text: str) -> str:
    return plain(text[:1].upper() + text[1:])


def extra_shown(values: Fields, errors: dict[str, list[str]]) -> list[str]:
    """What is set in YAML only; a field that is wrong is told as an error, not as one that was taken."""
    wrong = {match[0] for text in errors.get("yaml", ()) if (match := re.match(r"[^.:\s]+(?=[.:])", text))}
    return [name for name in extra_of(values) if name not in wrong]
