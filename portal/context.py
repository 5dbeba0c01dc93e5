"""What every page's frame shows: where one is, and the namespaces one may use."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import F, OuterRef, QuerySet, Subquery, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from accounts.access import namespaces_for
from accounts.models import Membership, Namespace, User
from jobs.models import Job, UsageInterval
from portal.wheel import version, wheel_name

SHOWN = 12  # of somebody who sees all namespaces: the page of them lists the rest


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Asked for only where a page shows it, so pages of people who are not signed in cost no query."""
    return {
        "navigation": SimpleLazyObject(lambda: _navigation(request)),
        "portal_version": version(),
        "portal_wheel": wheel_name(),
        "operator": settings.OPERATOR,
        "maintenance": settings.TRAINHALL_MAINTENANCE,
        "now": timezone.now(),
    }


def _navigation(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return {"namespaces": [], "counts": {}}
    mine = Job.objects.filter(owner=user)
    return {
        "namespaces": list(_namespaces(user)[:SHOWN]),
        "counts": {"live": mine.filter(status__in=("queued", "starting", "running")).count()},
        "current": request.GET.get("namespace", ""),
    }


def _namespaces(user: User) -> QuerySet[Namespace]:
    """Projects first, each with the person's role there and the GPUs that are held now."""
    held = (
        UsageInterval.objects.filter(namespace=OuterRef("pk"), ended_at=None)
        .order_by()
        .values("namespace")
        .annotate(gpus=Sum(F("gpus")))
        .values("gpus")
    )
    role = Membership.objects.filter(user=user, namespace=OuterRef("pk")).order_by("role").values("role")[:1]
    return (
        namespaces_for(user)
        .annotate(held_gpus=Subquery(held), role=Subquery(role))
        .order_by("-kind", F("role").asc(nulls_last=True), "slug")
    )
