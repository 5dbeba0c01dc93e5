"""A job as it goes over the wire (DESIGN 12): one shape for REST, websocket and page."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from jobs import failures, interruptions, placement, retries
from jobs.cluster.registry import topology
from jobs.keeping import ends_by, kept_until
from jobs.models import Attempt, Job, JobFeed, Worker
from jobs.snapshot import domains_of

INTERESTING = ("train/loss", "loss", "acc", "score", "reward", "perplexity")
USUAL_GAPS = 3.0  # a report that is late by so many times the usual gap makes an estimate worthless
UNKNOWN_GAP = 20.0  # seconds between reports, where there was only one yet
LEAST_PATIENCE = 20.0  # seconds: a network may hold up reports that come every second


def iso(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def job_row(job: Job) -> dict[str, Any]:
    """What a list shows; needs JobQuerySet.rows() or for_rows()."""
    feed: JobFeed = job.feed
    return {
        "id": job.pk,
        "name": job.name,
        "namespace": job.namespace.slug,
        "user": job.owner.username,
        "cluster": job.cluster_id,
        "status": job.status,
        "reason": {"code": job.reason_code, "text": job.reason},
        "attempt": job.attempt_number,
        "origin": job.origin,
        "priority": job.priority_id,
        "resources": {
            "workers": job.workers,
            "gpus": job.gpus,
            "gpu_type": job.gpu_type,
            "total_gpus": job.total_gpus,
        },
        "progress": progress_of(feed),
        "headline": by_interest(feed.headline),
        "held_by": job.held_by.username if job.held_by else None,
        "cancel_requested_at": iso(job.cancel_requested_at),
        "exit_code": job.exit_code,
        "tags": job.tags,
        "created_at": iso(job.created_at),
        "queued_at": iso(job.queued_at),
        "started_at": iso(job.started_at),
        "finished_at": iso(job.finished_at),
        "archived_at": iso(job.archived_at),
        "archived_by": job.archived_by.username if job.archived_by else None,
        "url": f"{settings.TRAINHALL_URL}{reverse('jobs:detail', args=[job.pk])}",
        "version": job.version,
    }


def by_interest(headline: dict[str, Any]) -> dict[str, Any]:
    """Losses first, then what is as good as an accuracy, then the rest: a row of a list shows only the first."""

    def interest(key: str) -> tuple[int, str]:
        name = key.lower()
        place = next((index for index, word in enumerate(INTERESTING) if word in name), len(INTERESTING))
        return place, key

    return {key: headline[key] for key in sorted(headline, key=interest)}


def job_document(job: Job) -> dict[str, Any]:
    """Everything about one job but its points, lines and events."""
    attempts = list(job.attempts.prefetch_related("workers").order_by("number"))
    latest = attempts[-1] if attempts else None
    taken_away = [found for attempt in attempts[-2:] if (found := interruptions.told(attempt))]
    return {
        **job_row(job),
        "spec": public_spec(job),
        "runtime": job.runtime_snapshot.get("slug"),
        "code": {"kind": job.parsed.code.kind, "label": job.code_label, "ready_at": iso(job.code_ready_at)},
        "adopted": _adopted(job),
        "notes": job.notes,
        "cancel_requested_by": job.cancel_requested_by.username if job.cancel_requested_by else None,
        "stopping": bool(latest and latest.stop_code and not latest.ended_at),
        "stop_deadline": iso(latest.stop_deadline) if latest and not latest.ended_at else None,
        "ends_by": iso(ends_by(job, latest)) if latest and not job.is_final and not latest.ended_at else None,
        "warned_at": iso(job.warned_at) if not job.is_final else None,
        "not_before": iso(job.not_before),
        "retries": {
            "asked": job.spec["retries"],
            "used": job.charged_failures,
            "at_most": retries.at_most(job),
            "because": _why_again(job, attempts),
        },
        "cause": failures.cause_of(job, attempts),
        "interruption": taken_away[-1] if taken_away else None,
        "files": {"kept_until": iso(kept_until(job)), "removed_at": iso(job.cleaned_at)},
        "attempts": [_attempt(attempt) for attempt in attempts],
        "placement": _placement(latest) if latest else "",
        "workers": [_worker(worker) for worker in latest.workers.all()] if latest else [],
        "log_seq": job.feed.log_seq,
        "points_seq": job.feed.points_seq,
        "refused_points": job.feed.refused_points,
    }


def _adopted(job: Job) -> dict[str, Any] | None:
    """Of a job that was made on its cluster: as what, and by whom in the cluster's words."""
    if not job.is_adopted:
        return None
    found = job.adoption
    return {
        "object": str(found),
        "uid": found.uid,
        "created_by": found.created_by,
        "is_known": found.is_known,
    }


def _why_again(job: Job, attempts: list[Attempt]) -> str:
    """Why there is, or will be, an attempt after the one before."""
    before = [
        attempt
        for attempt in attempts
        if attempt.ended_at and (attempt.number < job.attempt_number or not job.is_final)
    ]
    return retries.short_cause(before[-1].stop_code or before[-1].reason_code, before[-1].exit_code) if before else ""


def public_spec(job: Job) -> dict[str, Any]:
    """The parsed document; secrets and pasted files by name only."""
    spec = dict(job.spec)
    spec["secrets"] = [secret["name"] for secret in spec["secrets"]]
    spec["code"] = {
        **spec["code"],
        "files": list(spec["code"]["files"]),
    }
    return spec


def progress_of(feed: JobFeed) -> dict[str, Any] | None:
    """step, total, epoch, fraction, eta (seconds from now), at, done_at and stale_at (epoch seconds).

    An estimate goes down with the clock; where reports have stopped for three times their usual gap there is none.
    """
    progress = feed.progress
    if not progress:
        return None
    step, total, at = progress.get("step"), progress.get("total"), progress.get("at")
    fraction = step / total if total and step is not None else None
    ahead, now = progress.get("eta"), time.time()
    done_at = at + ahead if at is not None and ahead is not None else None
    stale_at = at + max(LEAST_PATIENCE, USUAL_GAPS * progress.get("gap", UNKNOWN_GAP)) if at is not None else None
    stale = stale_at is not None and now > stale_at
    return {
        "step": step,
        "total": total,
        "epoch": progress.get("epoch"),
        "fraction": min(1.0, max(0.0, fraction)) if fraction is not None else None,
        "eta": None if stale or done_at is None else max(0.0, done_at - now),
        "at": at,
        "done_at": done_at,
        "stale_at": stale_at,
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "cluster": attempt.cluster_id,
        "object": attempt.object_name,
        "admitted_at": iso(attempt.admitted_at),
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "reason": {"code": attempt.reason_code, "text": attempt.reason},
        "exit_code": attempt.exit_code,
        "cause": failures.told(attempt.cause),
        "interruption": interruptions.told(attempt),
        "stop_deadline": iso(attempt.stop_deadline),
    }


def _placement(attempt: Attempt) -> str:
    nodes = [worker.node for worker in attempt.workers.all() if worker.phase != "Pending"]
    if len(nodes) < 2 or len(nodes) < len(attempt.workers.all()):
        return ""  # told when all are there
    return placement.told(nodes, domains_of(attempt.cluster), topology(attempt.cluster_id))


def _worker(worker: Worker) -> dict[str, Any]:
    return {
        "name": str(worker),
        "role": worker.role,
        "index": worker.index,
        "node": worker.node,
        "pod": worker.pod_name,
        "phase": worker.phase,
        "exit_code": worker.exit_code,
        "signal": worker.signal,
        "reason": worker.reason,
        "message": worker.message,
        "started_at": iso(worker.started_at),
        "finished_at": iso(worker.finished_at),
        "lines": worker.log_number,
    }
