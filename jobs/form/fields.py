"""The fields of the form and the document they stand for, both ways; what the form has no field for is kept whole."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from jobs.parsing import FIELDS, RESOURCE_FIELDS
from jobs.quoting import text_of

SIMPLE = ("namespace", "name", "runtime", "launcher", "priority", "cluster", "time_limit", "stop_grace")
NUMBERS = ("workers", "gpus", "parameter_servers", "retries")
CODE_FIELDS = ("script", "upload_sha256", "upload_label", "git_url", "git_ref")
MODES = {"ro": True, "rw": False}
Fields = dict[str, Any]


def fields_of(data: Mapping[str, Any]) -> Fields:
    """What each field of the form shows for a document. The rest is `extra`: shown as set in YAML, and sent along."""
    fields: Fields = {**dict.fromkeys((*SIMPLE, *RESOURCE_FIELDS, *CODE_FIELDS, "command", "retries", "tags"), "")}
    fields |= {"param": [], "env": [], "secret": [], "shared": [], "volume": [], "code_kind": "none"}
    extra = {}
    for name, value in data.items():
        read = _READERS.get(name) if name in FIELDS else None
        taken = read(value) if read else None
        if taken is None:
            extra[name] = value
            if name == "code":
                fields["code_kind"] = "extra"
        else:
            fields |= taken
    fields["extra"] = json.dumps(extra, ensure_ascii=False, default=str) if extra else ""
    return fields


def data_of(fields: Fields, *, secrets: list[tuple[str, str]]) -> dict[str, Any]:
    """The document the fields stand for; empty ones are left out, so the runtime fills them."""
    data: dict[str, Any] = extra_of(fields)
    if fields["code_kind"] != "extra":
        data.pop("code", None)
    data |= {name: fields[name].strip() for name in SIMPLE if fields[name].strip()}
    # a browser sends CRLF, which a shell would hand on as a character of the last word
    data["command"] = fields["command"].replace("\r\n", "\n")
    for name in ("time_limit", "stop_grace"):
        if name in data:
            data[name] = narrow(data[name])
    if fields["retries"].strip():
        data["retries"] = _number(fields["retries"])
    resources = {
        name: _number(fields[name]) if name in NUMBERS else narrow(fields[name])
        for name in RESOURCE_FIELDS
        if fields[name].strip()
    }
    if resources:
        data["resources"] = resources
    if code := _code(fields):
        data["code"] = code
    if tags := [tag.strip() for tag in fields["tags"].split(",") if tag.strip()]:
        data["tags"] = tags
    if parameters := {row["name"]: _scalar(row["value"]) for row in fields["param"]}:
        data["parameters"] = parameters
    if env := {row["name"]: row["value"] for row in fields["env"]}:
        data["env"] = env
    named = {row["name"]: _shared(row["value"]) for row in fields.get("shared", ())}
    if secrets or named:
        data["secrets"] = {name: {"value": value} for name, value in secrets} | named
    if volumes := [_volume(row["name"], row["value"]) for row in fields.get("volume", ())]:
        data["volumes"] = volumes
    places = {name: place for place, name in enumerate(FIELDS)}
    return dict(sorted(data.items(), key=lambda item: places.get(item[0], len(places))))


def extra_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the form has no field for."""
    try:
        extra = json.loads(fields.get("extra") or "{}")
    except (json.JSONDecodeError, RecursionError):
        return {}
    return extra if isinstance(extra, dict) else {}


def narrow(text: str) -> str:
    """Full-width digits and letters, as an input method types them, are digits and letters."""
    return unicodedata.normalize("NFKC", text).strip()


def _number(text: str) -> int | str:
    """A number, or the text as it is, about which the document's reader then says what is wrong."""
    written = narrow(text)
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 12 else written


def _scalar(text: str) -> str | int | float | bool:
    """A number, true or false where the program gets the very characters that were typed; else the text."""
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        if str(value) == text and text not in ("nan", "inf", "-inf"):
            return value
    return text


def _code(fields: Fields) -> dict[str, Any]:
    kind = fields["code_kind"]
    if kind == "files" and fields["script"].strip():
        return {"files": {fields["script_name"].strip() or "train.py": fields["script"].replace("\r\n", "\n")}}
    if kind == "upload" and fields["upload_sha256"]:
        return {"upload": fields["upload_sha256"]}
    if kind == "git" and fields["git_url"].strip():
        source = {"git": fields["git_url"].strip()}
        return {**source, "ref": fields["git_ref"].strip()} if fields["git_ref"].strip() else source
    return {}


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def _text(name: str) -> Callable[[Any], Fields | None]:
    def read(value: Any) -> Fields | None:
        return {name: str(value)} if isinstance(value, str | int) and not isinstance(value, bool) else None

    return read


def _resources(value: Any) -> Fields | None:
    if (
        not isinstance(value, dict)
        or not set(value) <= set(RESOURCE_FIELDS)
        or not all(map(_is_scalar, value.values()))
    ):
        return None
    return {name: text_of(one) for name, one in value.items()}


def _tags(value: Any) -> Fields | None:
    fine = isinstance(value, list) and all(isinstance(tag, str) and "," not in tag for tag in value)
    return {"tags": ", ".join(value)} if fine else None


def _pairs(field: str) -> Callable[[Any], Fields | None]:
    def read(value: Any) -> Fields | None:
        if not isinstance(value, dict) or not all(map(_is_scalar, value.values())):
            return None
        return {field: [{"name": str(name), "value": text_of(one)} for name, one in value.items()]}

    return read


def _shared(text: str) -> dict[str, str]:
    """`team-keys/wandb`, a secret of the namespace and its key; without a key it is that of the variable's name."""
    source, slash, key = text.strip().partition("/")
    return {"from": source, "key": key} if slash else {"from": source}


def _secrets(value: Any) -> Fields | None:
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
        return None
    typed = {name: one for name, one in value.items() if set(one) <= {"value"}}
    named = {name: one for name, one in value.items() if "from" in one and set(one) <= {"from", "key"}}
    if len(typed) + len(named) < len(value) or not all(
        isinstance(part, str) for one in named.values() for part in one.values()
    ):
        return None
    shared = [
        {"name": str(name), "value": "/".join(one[part] for part in ("from", "key") if part in one)}
        for name, one in named.items()
    ]
    return {"secret": [{"name": str(name)} for name in typed], "shared": shared}


def _volume(name: str, text: str) -> dict[str, Any]:
    """`/data` is where it is mounted, `/data:ro` for reading; what is left out is as it is offered."""
    path, colon, mode = text.strip().rpartition(":")
    if not colon or mode not in MODES:
        path, mode = text.strip(), ""
    return {"name": name} | ({"path": path} if path else {}) | ({"read_only": MODES[mode]} if mode else {})


def _volumes(value: Any) -> Fields | None:
    if not isinstance(value, list) or not all(isinstance(one, dict) and _is_volume(one) for one in value):
        return None
    modes = {read_only: f":{mode}" for mode, read_only in MODES.items()}
    rows = [
        {"name": one["name"], "value": one.get("path", "") + modes.get(one.get("read_only", ""), "")} for one in value
    ]
    return {"volume": rows}


def _is_volume(one: dict[Any, Any]) -> bool:
    """Whether a row can say it, so that what comes back is the same."""
    texts = all(isinstance(one.get(field, "-"), str) and one.get(field, "-") for field in ("name", "path"))
    named = "name" in one and set(one) <= {"name", "path", "read_only"}
    return named and texts and ":" not in one.get("path", "") and isinstance(one.get("read_only", True), bool)


def _code_fields(value: Any) -> Fields | None:
    if not isinstance(value, dict):
        return None
    files = value.get("files")
    if set(value) == {"files"} and isinstance(files, dict) and len(files) == 1:
        name, text = next(iter(files.items()))
        return {"code_kind": "files", "script_name": str(name), "script": text} if isinstance(text, str) else None
    if not all(isinstance(one, str) for one in value.values()):
        return None
    if set(value) == {"upload"}:
        label = _("sha256 %(digest)s") % {"digest": value["upload"][:12]}
        return {"code_kind": "upload", "upload_sha256": str(value["upload"]), "upload_label": label}
    if "git" in value and set(value) <= {"git", "ref"}:
        return {"code_kind": "git", "git_url": str(value["git"]), "git_ref": str(value.get("ref", ""))}
    return None


_READERS: dict[str, Callable[[Any], Fields | None]] = {
    **{name: _text(name) for name in (*SIMPLE, "command", "retries")},
    "resources": _resources,
    "tags": _tags,
    "parameters": _pairs("param"),
    "env": _pairs("env"),
    "secrets": _secrets,
    "volumes": _volumes,
    "code": _code_fields,
}
