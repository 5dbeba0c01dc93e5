"""What becomes of waiting jobs whose owner has lost the right to run them: they are held, and a lead decides."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Membership, MembershipChange
from accounts.roles import NEEDS, RANK, SiteRole, Verb
from jobs import intents, live
from jobs.models import Job, JobEvent
from jobs.states import JobStatus, Reason


def hold_jobs_of_who_left() -> int:
    """Hold every waiting job whose owner may not submit where it waits, or is disabled. Answer: how many.

    The rights of now decide, not the news of them: a job that ran when its owner left may wait again a day later. Once for each
    job: what a lead has released since goes on. A job that runs goes on: stopping it is a decision, too, and the lead's.
    """
    news = list(MembershipChange.objects.filter(handled_at=None).values_list("pk", flat=True))
    enough = [role for role, rank in RANK.items() if rank >= RANK[NEEDS[Verb.SUBMIT]]]
    has_role = Membership.objects.filter(user=OuterRef("owner"), namespace=OuterRef("namespace"), role__in=enough)
    may_run = Q(owner__is_active=True) & (Exists(has_role) | Q(owner__site_role=SiteRole.ADMIN))
    decided = JobEvent.objects.filter(job=OuterRef("pk"), reason_code=Reason.OWNER_LEFT)
    waiting = Job.objects.filter(status=JobStatus.QUEUED, held_by=None).exclude(may_run).exclude(Exists(decided))
    # who made those never had a right here, but one that an admin of the cluster gave them there
    waiting = waiting.exclude(adoption__is_known=False)
    held = sum(_hold(job) for job in waiting.select_related("owner", "namespace"))
    MembershipChange.objects.filter(pk__in=news).update(handled_at=timezone.now())
    if news:
        live.wake("jobs.tasks.follow_rights")
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
