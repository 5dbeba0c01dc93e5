"""A job again, changed or not: its document as it was sent, its code, and the names of its secrets."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

from django.db.models import IntegerField
from django.db.models.functions import Cast, Substr
from django.utils.translation import gettext as _

from jobs import lineage
from jobs.exceptions import SpecError, WrongState
from jobs.form import posted
from jobs.form.fields import Fields, fields_of
from jobs.models import Job
from jobs.reading import Document, read_document
from jobs.yaml_text import merged, plain_copy

MAPPINGS = ("parameters", "env", "secrets")  # whose names may hold dots
LONGEST_NAME = 200


def data_to_clone(job: Job, *, code: str = "same") -> dict[str, Any]:
    """The document of a clone: as sent, but for the code, which is the very same archive or commit, and the name.

    `code="latest"` leaves a branch or tag of git as it was named, so that it is looked up again.
    """
    if job.is_adopted:
        raise WrongState(_("It was made with kubectl, so there is no document of it to clone: create the Job again."))
    data: dict[str, Any] = plain_copy(lineage.data_of(job))
    data.setdefault("namespace", job.namespace.slug)
    data.setdefault("runtime", job.runtime_snapshot.get("slug"))
    source = data.get("code")
    if isinstance(source, dict):
        if "git" in source and code == "same" and (commit := commit_of(job)):
            data["code"] = {"git": source["git"], "ref": commit}
        elif len(source.get("files") or ()) > 1 and job.code_id:
            data["code"] = {"upload": job.code_id}
    data["name"] = next_name(job)
    return data


def commit_of(job: Job) -> str:
    """The commit its code was; empty where it is not from git, or was never fetched."""
    _url, at, commit = job.code_label.rpartition("@")
    return commit if at and re.fullmatch(r"[0-9a-f]{40,64}", commit) else ""


def fields_to_clone(job: Job) -> Fields:
    """The form filled with what another job asked for; secrets keep their names only."""
    data = data_to_clone(job)
    fields = {
        **posted.blank(namespace=data["namespace"]),
        **fields_of(posted.without_secrets(data)),
        "parent": job.pk,
        "written": "form",
    }
    if fields["code_kind"] == "upload" and job.code:
        fields["upload_label"] = _("%(count)d files of %(job)s") % {"count": job.code.file_count, "job": job.name}
    if job.spec_format == "yaml":
        # the writer's own comments and order go on in the clone
        fields |= {"yaml": merged(job.spec_text, posted.without_secrets(data)), "yaml_own": "1"}
    return fields


def next_name(job: Job) -> str:
    """digits, digits-2, digits-3: counted on, and never one that the namespace has. A number that belongs to the name,
    as in resnet-50, is not counted."""
    names = Job.objects.filter(namespace_id=job.namespace_id).order_by()
    base = job.name
    counted = re.fullmatch(r"(.+)-(\d{1,6})", base)
    if counted and names.filter(name=counted.group(1)).exists():
        base = counted.group(1)
    base = base[: LONGEST_NAME - 8]
    counted_on = names.filter(name__startswith=f"{base}-").annotate(tail=Substr("name", len(base) + 2))
    numbers = counted_on.filter(tail__regex=r"^[1-9]\d{0,5}$").annotate(number=Cast("tail", IntegerField()))
    free = 2
    # in order and as they come, so that neither names nor numbers are ever held
    for number in numbers.order_by("number").values_list("number", flat=True).distinct().iterator():
        if number > free:
            break
        free = max(free, number + 1)
    return f"{base}-{free}"


def document_to_clone(job: Job, *, changes: Mapping[str, Any], code: str = "same") -> Document:
    """The document of a clone with some fields set by dotted name; null takes a field out. Raise SpecError."""
    data = data_to_clone(job, code=code)
    secrets = data.get("secrets")
    errors: dict[str, list[str]] = {}
    for dotted, value in changes.items():
        parts = dotted.split(".")
        if parts[0] in MAPPINGS and len(parts) > 2:
            parts = [parts[0], ".".join(parts[1:])]
        if not all(parts):
            errors[dotted] = [_("is not a field; name one such as parameters.lr")]
        elif not _set(data, parts, copy.deepcopy(value)):
            errors[dotted] = [_("cannot be set: what stands above it is not a mapping")]
    for name, entry in (data.get("secrets") or {}).items() if isinstance(secrets, dict) else ():
        if isinstance(entry, dict) and "value" in entry and not entry["value"]:
            errors[f"secrets.{name}"] = [
                _("a clone keeps the name of a secret only: set it to {value: …} again, or to null to leave it out")
            ]
    if errors:
        field, texts = next(iter(errors.items()))
        raise SpecError(f"{field}: {texts[0]}", fields=errors)
    if job.spec_format == "yaml":
        text = merged(job.spec_text, data)
        return read_document(text, format="yaml")
    return read_document(json.dumps(data, ensure_ascii=False, indent=2), format="json")


def _set(data: dict[str, Any], parts: list[str], value: Any) -> bool:
    for part in parts[:-1]:
        if data.get(part) is None:
            data[part] = {}
        data = data[part]
        if not isinstance(data, dict):
            return False
    if value is None:
        data.pop(parts[-1], None)
    else:
        data[parts[-1]] = value
    return True
