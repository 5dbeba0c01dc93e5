"""A job and the job it is a clone of: what was changed, as the two documents say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from ruamel.yaml.comments import CommentedMap

from accounts.models import User
from jobs.models import Job
from jobs.quoting import text_of
from jobs.reading import read_document

LONGEST = 200  # characters of a value that are shown


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs; a side that says nothing is empty, a text of several lines is counted."""

    field: str  # dotted, as in the document
    before: str
    after: str
    lines: str = ""

    @property
    def label(self) -> str:
        """What people call it: a parameter or a resource by its own name."""
        first, _dot, rest = self.field.partition(".")
        return rest if rest and first in ("parameters", "resources") else self.field


def data_of(job: Job) -> dict[str, Any]:
    """The document a job was made from, as sent."""
    return read_document(job.spec_text, format=job.spec_format).data


def visible_parent(job: Job, user: User) -> Job | None:
    """The job it is a clone of, for who may see that one."""
    return Job.objects.visible_to(user).filter(pk=job.parent_id).first() if job.parent_id else None


def changes_from(parent: Job, data: Mapping[str, Any]) -> list[Change]:
    """What a document asks for otherwise than its parent did. Names are labels, so they are left out."""
    before, after = data_of(parent), dict(data)
    if _is_same_code(parent, before.get("code"), after.get("code")):
        before, after = ({**one, "code": None} for one in (before, after))
    return list(_differences(before, after, ""))


def changes_of(job: Job, parent: Job) -> list[Change]:
    """The same for a job that was made; also that its runtime was edited in between."""
    found = changes_from(parent, data_of(job))
    then, now = parent.runtime_snapshot, job.runtime_snapshot
    if then.get("slug") == now.get("slug") and then.get("version", 1) != now.get("version", 1):
        field = _("version of the runtime %(slug)s") % {"slug": now.get("slug")}
        found.append(Change(field, str(then.get("version", 1)), str(now.get("version", 1))))
    return found


def as_document(changes: list[Change]) -> list[dict[str, str]]:
    return [{**asdict(change), "label": change.label} for change in changes]


def told(job: Job, user: User) -> dict[str, Any]:
    """What REST says of a job's parent, to who may see that one."""
    parent = visible_parent(job, user)
    if parent is None:
        return {"parent": None, "changes": []}
    return {
        "parent": {"id": parent.pk, "name": parent.name},
        "changes": as_document(changes_of(job, parent)),
    }


def _is_same_code(parent: Job, before: Any, after: Any) -> bool:
    """The same archive by its digest, and the commit that a branch was then, are the same code."""
    if before == after or not isinstance(after, dict):
        return bool(before == after)
    if parent.code_id and after.get("upload") == parent.code_id:
        return True
    same_place = isinstance(before, dict) and "git" in after and before.get("git") == after["git"]
    return same_place and parent.code_label == f"{after['git']}@{after.get('ref')}"


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        field = f"{path}{name}"
        if field == "name" or _is_same(old, new):
            continue
        if field == "secrets":
            # values are nobody's to compare
            old, new = (dict.fromkeys(side, "") if isinstance(side, dict) else None for side in (old, new))
            if old == new:
                continue
            yield Change(field, ", ".join(old or ()), ", ".join(new or ()))
        elif {type(old), type(new)} <= {type(None), dict, CommentedMap}:
            yield from _differences(old or {}, new or {}, f"{field}.")
        else:
            yield _change(field, old, new)


def _is_same(old: Any, new: Any) -> bool:
    empty: tuple[Any, ...] = (None, "", {}, [])
    return (old in empty and new in empty) or _shown(old) == _shown(new)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_shown(one) for one in value)
    return text_of(value)


def _change(field: str, old: Any, new: Any) -> Change:
    before, after = _shown(old), _shown(new)
    lines = ""
    if "\n" in before.strip() or "\n" in after.strip():
        lines = _counted(before, after)
    return Change(field, _short(before), _short(after), lines)


def _counted(before: str, after: str) -> str:
    # counted, not aligned: a difference that aligns lines takes time by their square, and this is asked while one types
    had, has = Counter(before.splitlines()), Counter(after.splitlines())
    more, fewer = (has - had).total(), (had - has).total()
    if not more and not fewer:
        return _("the same lines in another order")
    return _("%(more)s and %(fewer)s") % {
        "more": ngettext("%(count)d line more", "%(count)d lines more", more) % {"count": more},
        "fewer": ngettext("%(count)d line fewer", "%(count)d lines fewer", fewer) % {"count": fewer},
    }


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
