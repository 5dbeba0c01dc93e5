"""The catalogue of runtimes: what an admin may put there, checked as jobs will use it. Page and REST are doors to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit
from accounts.models import User
from jobs.cluster.launchers import LAUNCHERS
from jobs.exceptions import NotAllowed, SpecError
from jobs.models import Job, PriorityClass, Runtime
from jobs.parsing import FIELDS, RESOURCE_FIELDS, parse_job
from jobs.patterns import compile_pattern
from jobs.reading import document_of
from jobs.states import JobStatus

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
WRITABLE = (
    "title",
    "description",
    "image",
    "launchers",
    "defaults",
    "locked",
    "metric_rules",
    "deprecation",
    "is_active",
)
NO_DEFAULT = {"namespace", "runtime", "code", "secrets", "volumes"}  # a job's own, or nothing a template can know
DEFAULT_FIELDS = [name for name in FIELDS if name not in NO_DEFAULT]
MAX_RULES = 50
USE_WINDOW = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Use:
    """How much a runtime was used in the last 30 days, by the jobs made then."""

    jobs: int = 0
    failed: int = 0

    @property
    def failed_share(self) -> float | None:
        return self.failed / self.jobs if self.jobs else None


def check_admin(user: User) -> None:
    if not user.is_site_admin:
        raise NotAllowed(_("Only an admin of the portal may change its runtimes."))


def uses() -> dict[str, Use]:
    """By slug of the snapshot, so also of runtimes that are gone: one query."""
    rows = (
        Job.objects.filter(created_at__gte=timezone.now() - USE_WINDOW)
        .order_by()
        .values("runtime_snapshot__slug")
        .annotate(jobs=Count("pk"), failed=Count("pk", filter=Q(status=JobStatus.FAILED)))
    )
    return {row["runtime_snapshot__slug"]: Use(row["jobs"], row["failed"]) for row in rows}


def create(*, user: User, slug: str, values: Mapping[str, Any], request: HttpRequest | Request | None) -> Runtime:
    """A runtime that jobs may choose from the next request on. Raise SpecError naming every wrong field."""
    check_admin(user)
    errors: dict[str, list[str]] = {}
    if not isinstance(slug, str) or not SLUG.fullmatch(slug):
        errors["slug"] = [_("must be 1 to 63 of a-z, 0-9 and dashes, such as pytorch-2-9")]
    elif Runtime.objects.filter(pk=slug).exists():
        errors["slug"] = [_("there is a runtime of this name already; edit that one or choose another name")]
    runtime = Runtime(slug=slug, updated_by=user)
    _fill(runtime, values, errors)
    with transaction.atomic():
        runtime.save(force_insert=True)
        audit.record(user, "runtime.create", target=slug, after=runtime.snapshot(), request=request)
    return runtime


def edit(
    runtime: Runtime,
    *,
    user: User,
    values: Mapping[str, Any],
    version: int | None,
    request: HttpRequest | Request | None,
) -> Runtime:
    """Change what new jobs get; jobs that exist keep their snapshot.

    `version` is what the editor started from: another one meanwhile is refused, so that two admins do not undo each
    other unseen.
    """
    check_admin(user)
    with transaction.atomic():
        runtime = Runtime.objects.select_for_update().get(pk=runtime.pk)
        if version is not None and version != runtime.version:
            text = _("%(name)s was changed by somebody else while you edited it; load it again and redo your change.")
            raise SpecError(text % {"name": runtime.pk}, fields={"version": [text % {"name": runtime.pk}]})
        before = runtime.snapshot()
        _fill(runtime, values, {})
        runtime.version += 1
        runtime.updated_by = user
        runtime.save()
        audit.record(user, "runtime.edit", target=runtime.pk, before=before, after=runtime.snapshot(), request=request)
    return runtime


def _fill(runtime: Runtime, values: Mapping[str, Any], errors: dict[str, list[str]]) -> None:
    """Put `values` into the row. Raise SpecError with `errors` and what else is wrong; the row is not to be used then."""
    for name in values:
        if name not in WRITABLE:
            errors[str(name)[:100]] = [
                _("there is no such field; known are %(names)s") % {"names": ", ".join(WRITABLE)}
            ]
    for name in WRITABLE:
        if name in values:
            setattr(runtime, name, values[name])
    _check_texts(runtime, errors)
    _check_launchers(runtime, errors)
    _check_defaults(runtime, errors)
    _check_locked(runtime, errors)
    _check_rules(runtime, errors)
    if errors:
        field, texts = next(iter(errors.items()))
        raise SpecError(f"{field}: {texts[0]}", fields=errors)


def _check_texts(runtime: Runtime, errors: dict[str, list[str]]) -> None:
    for name, limit, required in (
        ("title", 100, True),
        ("image", 300, True),
        ("description", 5000, False),
        ("deprecation", 300, False),
    ):
        value = getattr(runtime, name)
        if not isinstance(value, str) or "\x00" in value or len(value) > limit:
            errors[name] = [_("must be text of at most %(limit)s characters") % {"limit": limit}]
        elif required and not value.strip():
            errors[name] = [_("is required")]
        elif name == "image" and re.search(r"\s", value.strip()):
            errors[name] = [_("is not an image name, such as registry.example.com/ml/pytorch:2.9")]
        else:
            setattr(runtime, name, value.strip())
    if not isinstance(runtime.is_active, bool):
        errors["is_active"] = [_("must be true or false")]


def _check_launchers(runtime: Runtime, errors: dict[str, list[str]]) -> None:
    named = runtime.launchers
    if not isinstance(named, list) or not named:
        errors["launchers"] = [_("must name at least one of %(names)s") % {"names": ", ".join(LAUNCHERS)}]
    elif unknown := [str(name) for name in named if name not in LAUNCHERS]:
        errors["launchers"] = [
            _("there is no launcher %(unknown)s; there are %(names)s")
            % {"unknown": ", ".join(unknown), "names": ", ".join(LAUNCHERS)}
        ]


def _check_defaults(runtime: Runtime, errors: dict[str, list[str]]) -> None:
    """The defaults must do as a job document: what a job could not ask for, a template cannot give."""
    defaults = runtime.defaults
    if not isinstance(defaults, dict):
        errors["defaults"] = [_("must be a mapping of fields of the job document, such as resources: {gpus: 1}")]
        return
    if unknown := [str(name) for name in defaults if name not in DEFAULT_FIELDS]:
        errors["defaults"] = [
            _("cannot set %(unknown)s; a runtime may set %(names)s")
            % {"unknown": ", ".join(unknown), "names": ", ".join(DEFAULT_FIELDS)}
        ]
        return
    if "launchers" in errors:
        return
    document = document_of({"command": "true", **defaults, "namespace": "n", "runtime": "r"})
    snapshot = {"image": "i", "launchers": runtime.launchers, "defaults": {}, "locked": []}
    try:
        parse_job(document, runtimes={"r": snapshot}, priorities=PriorityClass.objects.values_list("name", flat=True))
    except SpecError as error:
        errors["defaults"] = [f"{field}: {text}" for field, texts in error.fields.items() for text in texts]


def _check_locked(runtime: Runtime, errors: dict[str, list[str]]) -> None:
    locked = runtime.locked
    if not isinstance(locked, list) or not all(isinstance(name, str) for name in locked):
        errors["locked"] = [_("must be a list of fields, such as image or resources.gpus")]
        return
    for dotted in locked:
        first, _dot, rest = dotted.partition(".")
        known = first in DEFAULT_FIELDS and (
            not rest or (first == "resources" and rest in RESOURCE_FIELDS) or (first in ("env", "parameters") and rest)
        )
        if not known:
            errors.setdefault("locked", []).append(
                _("%(name)s is no field a runtime can lock; it may be one of %(names)s, or resources.gpus, env.NAME")
                % {"name": dotted[:100], "names": ", ".join(DEFAULT_FIELDS)}
            )
    runtime.locked = list(dict.fromkeys(locked))


def _check_rules(runtime: Runtime, errors: dict[str, list[str]]) -> None:
    rules = runtime.metric_rules
    if not isinstance(rules, list) or len(rules) > MAX_RULES:
        errors["metric_rules"] = [_("must be a list of at most %(count)s rules") % {"count": MAX_RULES}]
        return
    for number, rule in enumerate(rules, start=1):
        if text := wrong_rule(rule):
            errors.setdefault("metric_rules", []).append(
                _("rule %(number)s: %(what)s") % {"number": number, "what": text}
            )


def wrong_rule(rule: object) -> str:
    """What is wrong with a metric rule, or nothing: `{"pattern": RE2 with named groups, "group": "train"}`."""
    if not isinstance(rule, dict) or not isinstance(rule.get("pattern"), str) or set(rule) - {"pattern", "group"}:
        return _("must be {pattern: …, group: …}")
    if not isinstance(rule.get("group", ""), str) or len(rule.get("group", "")) > 100:
        return _("the group must be a text of at most 100 characters")
    try:
        groups = compile_pattern(rule["pattern"]).groupindex
    except ValueError as error:
        return _("the pattern is not RE2: %(why)s") % {"why": error}
    if not set(groups) - {"step", "epoch", "total"}:
        return _("the pattern names no metric; write one as (?P<loss>[0-9.]+)")
    return ""
