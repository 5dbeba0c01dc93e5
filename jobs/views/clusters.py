"""The operators' page of clusters: what each is, whether it was prepared, and what was found otherwise in its namespaces."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts import audit
from jobs import live
from jobs.cluster.registry import kinds
from jobs.models import Cluster, ClusterNamespace
from jobs.scope import person
from jobs.surveys import mend

MOST = 200  # namespaces of one cluster on the page, those with something to tell first


@require_http_methods(["GET", "HEAD", "POST"])
def clusters(request: HttpRequest) -> HttpResponse:
    user = person(request)
    if not user.is_site_admin:
        raise PermissionDenied(_("This is for admins of the site."))
    if request.method == "POST":
        audit.record(user, "cluster.look", request=request)
        for task in ("keep_namespaces", "survey_clusters"):
            live.wake(f"jobs.tasks.{task}")
        messages.info(request, _("A worker looks now; reload in a moment."))
        return redirect("jobs:clusters")
    known = kinds()
    rows = list(ClusterNamespace.objects.select_related("namespace").order_by("namespace__slug"))
    shown = []
    for cluster in Cluster.objects.order_by("name"):
        mine = [row for row in rows if row.cluster_id == cluster.name]
        mine.sort(key=lambda row: (not row.error, not row.is_drift_there, row.drifted_at is None))
        shown.append(
            {
                "cluster": cluster,
                "is_connected": cluster.name in known,
                "namespaces": mine[:MOST],
                "mend": mend(cluster.survey.get("changed", [])),
                "more": max(0, len(mine) - MOST),
                "wrong": sum(bool(row.error or row.is_drift_there) for row in mine),
            }
        )
    return render(request, "jobs/clusters.html", {"clusters": shown})
