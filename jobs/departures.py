"""What becomes of waiting jobs whose owner has lost the right to run them: they are held, and a lead decides."""

from __future__ import annotations

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import MembershipChange
from accounts.roles import Verb, allows
from jobs import intents
from jobs.models import Job
from jobs.states import JobStatus, Reason

MOST = 500  # changes at one look; the rest waits for the next


def hold_jobs_of_who_left() -> int:
    """Read the changes of memberships that nobody has read, and look for owners who are disabled. Answer: jobs held.

    A job that runs goes on: stopping it is a decision, too, and the lead's.
    """
    unread = MembershipChange.objects.filter(handled_at=None).order_by("pk").select_related("user", "namespace")
    changes = list(unread[:MOST])
    lost = Q(pk__in=[])
    # who lost a role and has it again has lost nothing
    latest = {(change.user_id, change.namespace_id): change for change in changes}
    for change in latest.values():
        if not allows(verb=Verb.SUBMIT, role=change.after or None, site_role=change.user.site_role):
            lost |= Q(owner=change.user, namespace=change.namespace)
    waiting = Job.objects.filter(status=JobStatus.QUEUED, held_by=None)
    held = 0
    # once: what a lead has released since goes on, whoever owns it
    undecided = Q(owner__is_active=False) & ~Q(events__reason_code=Reason.OWNER_LEFT)
    for job in waiting.filter(lost | undecided).select_related("owner", "namespace").distinct():
        held += _hold(job)
    MembershipChange.objects.filter(pk__in=[change.pk for change in changes]).update(handled_at=timezone.now())
    return held


def _hold(job: Job) -> bool:
    about = {"user": job.owner.username, "namespace": job.namespace.slug}
    if job.owner.is_active:
        text = _("%(user)s may not run jobs in %(namespace)s any more: a lead releases or stops it.") % about
    else:
        text = _("The account of %(user)s is disabled: a lead of %(namespace)s releases or stops it.") % about
    if not intents.hold_for_lead(job, text=text):
        return False  # it has moved meanwhile; the next look finds it where it is
    audit.record(None, "job.hold", target=job.pk, namespace=job.namespace.slug, after={"owner": job.owner.username})
    return True
