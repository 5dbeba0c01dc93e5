"""Forms not yet sent, kept for their writers on every device. A secret's value is never among them."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit
from accounts.models import AuditEvent, User
from jobs.documents import iso
from jobs.exceptions import SpecError
from jobs.form import posted
from jobs.form.fields import Fields, extra_of
from jobs.models import Draft, Job
from jobs.reading import read_document

MAX_DRAFTS = 30  # of one person; the oldest makes room
MAX_BYTES = posted.MAX_SCRIPT + 2 * 2**20
MAX_ROWS = 500
REMEMBERED = timedelta(days=30)  # of what a draft became: who goes back to its address is led on


def drafts_of(user: User) -> list[Draft]:
    return list(Draft.objects.filter(owner=user)[:MAX_DRAFTS])


def draft_of(user: User, draft_id: str) -> Draft:
    """One's own draft; of somebody else's there is nothing to know."""
    try:
        return Draft.objects.get(pk=uuid.UUID(draft_id), owner=user)
    except (ValueError, Draft.DoesNotExist) as error:
        raise Http404 from error


def create(user: User, values: Any, *, request: HttpRequest | Request) -> Draft:
    kept = kept_values(values)
    with transaction.atomic():
        draft = Draft.objects.create(owner=user, values=kept)
        spare = Draft.objects.filter(owner=user).values_list("pk", flat=True)[MAX_DRAFTS:]
        Draft.objects.filter(pk__in=list(spare)).delete()
        audit.record(user, "draft.create", target=str(draft.pk), request=request)
    return draft


def save(draft: Draft, values: Any) -> Draft:
    """Every few key strokes: no audit row for each, the draft is nobody's but its writer's, and its making has one."""
    draft.values, draft.updated_at = kept_values(values), timezone.now()
    # an update only: a draft whose job was made meanwhile must not come back
    if not Draft.objects.filter(pk=draft.pk).update(values=draft.values, updated_at=draft.updated_at):
        raise Http404
    return draft


def remove(draft: Draft, *, user: User, request: HttpRequest | Request, job: Job | None = None) -> None:
    with transaction.atomic():
        after = {"job": job.pk} if job else None
        audit.record(user, "draft.delete", target=str(draft.pk), after=after, request=request)
        draft.delete()


def lives(user: User, draft_id: str) -> bool:
    try:
        return Draft.objects.filter(owner=user, pk=uuid.UUID(draft_id)).exists()
    except ValueError:
        return False


def job_of(user: User, draft_id: str) -> Job | None:
    """What a draft became, told by the row that was written when it went."""
    try:
        target = str(uuid.UUID(draft_id))
    except ValueError:
        return None
    # by time first: the audit log is long, and found by its times only
    gone = AuditEvent.objects.filter(at__gte=timezone.now() - REMEMBERED, action="draft.delete", target=target)
    row = gone.filter(actor_subject=user.subject, actor=user.username).first()
    return Job.objects.visible_to(user).filter(pk=row.after["job"]).first() if row and row.after else None


def remove_sent(user: User, draft_id: str, *, job: Job, request: HttpRequest | Request) -> None:
    """The draft of a form that became a job."""
    try:
        draft = draft_of(user, draft_id)
    except Http404:
        return
    remove(draft, user=user, request=request, job=job)


def fields_of_draft(draft: Draft) -> Fields:
    return {**posted.blank(namespace=""), **draft.values, "draft": str(draft.pk)}


def draft_document(draft: Draft, *, whole: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": str(draft.pk),
        "name": draft.values.get("name") or "",
        "namespace": draft.values.get("namespace") or "",
        "created_at": iso(draft.created_at),
        "updated_at": iso(draft.updated_at),
    }
    return {**found, "values": draft.values} if whole else found


def kept_values(values: Any) -> Fields:
    """Only fields of the form, and no secret's value. Raise SpecError on what is no form."""
    if not isinstance(values, dict):
        raise SpecError(_("A draft is the fields of the form by name."))
    kept: Fields = {}
    for name in posted.TEXTS:
        text = values.get(name, "")
        if not isinstance(text, str):
            raise SpecError(_("%(name)s must be text.") % {"name": name})
        kept[name] = text.replace("\0", "\ufffd")
    for pair in posted.PAIRS:
        kept[pair] = _rows(values.get(pair, []), ("name", "value"))
    kept["secret"] = _rows(values.get("secret", []), ("name",))
    kept["yaml"] = _without_secrets(kept["yaml"])
    extra = posted.without_secrets(extra_of(kept))
    kept["extra"] = json.dumps(extra, ensure_ascii=False) if extra else ""
    # a pasted .env is full of secrets, and not yet sorted into rows
    kept["env_text"] = ""
    try:
        size = len(json.dumps(kept, ensure_ascii=False).encode())
    except UnicodeEncodeError as error:
        raise SpecError(_("The draft holds half a character (a lone surrogate), which cannot be kept.")) from error
    if size > MAX_BYTES:
        raise SpecError(_("The draft is larger than %(most)d MB.") % {"most": MAX_BYTES // 2**20})
    return kept


def _rows(rows: Any, names: tuple[str, ...]) -> list[dict[str, str]]:
    if not isinstance(rows, list) or len(rows) > MAX_ROWS or not all(isinstance(row, dict) for row in rows):
        raise SpecError(_("Rows of a draft are a list of at most %(most)d names and values.") % {"most": MAX_ROWS})
    return [{name: str(row.get(name, "")).replace("\0", "\ufffd") for name in names} for row in rows]


def _without_secrets(text: str) -> str:
    """YAML without the values of secrets; half-written YAML that names secrets is not kept: the fields are."""
    if "secrets" not in text:
        return text
    try:
        return read_document(text, format="yaml").without_values_of_secrets()
    except SpecError:
        return ""
