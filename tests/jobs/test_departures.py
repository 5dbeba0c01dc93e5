"""Who loses a right while jobs wait: they are held with a sentence, once, and a lead decides."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import MembershipChange, User
from jobs import departures, dispatch, intents, submission
from jobs.exceptions import NotAllowed
from jobs.models import Job, JobEvent
from jobs.states import Reason
from tests.factories import make_job

pytestmark = pytest.mark.django_db


def leave(user: User, namespace: Any, after: str = "") -> None:
    user.memberships.filter(namespace=namespace).delete()
    if after:
        user.memberships.create(namespace=namespace, role=after, source="ldap:others")
    MembershipChange.objects.create(user=user, namespace=namespace, before="member", after=after)


def test_waiting_jobs_of_who_left_are_held_and_those_of_others_and_elsewhere_are_not(
    alice: User, bob: User, vision: Any
) -> None:
    hers, his = make_job(alice, vision), make_job(bob, vision)
    own = make_job(alice, alice.personal_namespace)
    leave(alice, vision)
    assert departures.hold_jobs_of_who_left() == 1
    hers.refresh_from_db()
    assert (hers.held_by, hers.reason_code) == (alice, Reason.OWNER_LEFT)
    assert hers.reason == "alice may not run jobs in vision any more: a lead releases or stops it."
    for job in (his, own):
        job.refresh_from_db()
        assert job.held_by is None
    assert not MembershipChange.objects.filter(handled_at=None).exists()


def test_the_sentence_stays_at_every_look_of_the_dispatcher(alice: User, vision: Any) -> None:
    job = make_job(alice, vision)
    leave(alice, vision)
    departures.hold_jobs_of_who_left()
    dispatch.admit_waiting()
    job.refresh_from_db()
    assert job.reason_code == Reason.OWNER_LEFT and "a lead releases" in job.reason
    assert JobEvent.objects.filter(job=job, reason_code=Reason.OWNER_LEFT).count() == 1


def test_a_viewer_may_not_run_jobs_either_and_a_new_lead_may(alice: User, bob: User, vision: Any) -> None:
    make_job(alice, vision)
    make_job(bob, vision)
    leave(alice, vision, after="viewer")
    leave(bob, vision, after="lead")
    assert departures.hold_jobs_of_who_left() == 1


def test_the_lead_finds_them_at_home_and_a_member_does_not(alice: User, bob: User, carol: User, vision: Any) -> None:
    job = make_job(alice, vision, name="left behind")
    leave(alice, vision)
    departures.hold_jobs_of_who_left()
    for person, finds in ((carol, True), (bob, False)):
        client = Client()
        client.force_login(person)
        page = client.get("/").content.decode()
        assert (f"/jobs/{job.pk}/" in page) is finds


def test_list_and_page_do_not_say_that_who_left_holds_it(alice: User, carol: User, vision: Any) -> None:
    job = make_job(alice, vision, name="left behind")
    wanted = make_job(carol, vision, name="kept back")
    leave(alice, vision)
    departures.hold_jobs_of_who_left()
    intents.hold(wanted, actor=carol)
    client = Client()
    client.force_login(carol)
    for path in ("/jobs/?user=alice", f"/jobs/{job.pk}/"):
        page = client.get(path).content.decode()
        assert "held for a lead" in page and "held by alice" not in page, path
    page = client.get(f"/jobs/{wanted.pk}/").content.decode()
    assert "held by carol" in page and "held for a lead" not in page


def test_the_lead_decides_and_the_decision_stands(alice: User, carol: User, vision: Any) -> None:
    job = make_job(alice, vision)
    alice.is_active = False
    alice.save()
    assert departures.hold_jobs_of_who_left() == 1
    job.refresh_from_db()
    assert "The account of alice is disabled" in job.reason
    with pytest.raises(NotAllowed):
        submission.release(job, user=alice)
    submission.release(job, user=carol)
    assert departures.hold_jobs_of_who_left() == 0
    job.refresh_from_db()
    assert job.held_by is None


def test_who_has_the_role_again_when_somebody_looks_has_lost_nothing(alice: User, vision: Any) -> None:
    job = make_job(alice, vision)
    for before, after in (("member", ""), ("", "member")):
        MembershipChange.objects.create(user=alice, namespace=vision, before=before, after=after)
    assert departures.hold_jobs_of_who_left() == 0
    job.refresh_from_db()
    assert job.held_by is None and not MembershipChange.objects.filter(handled_at=None).exists()


def test_a_job_that_ran_when_its_owner_left_is_held_when_it_waits_again(alice: User, vision: Any) -> None:
    job = make_job(alice, vision, status="running")
    leave(alice, vision)
    assert departures.hold_jobs_of_who_left() == 0
    Job.objects.filter(pk=job.pk).update(status="queued")  # as after a preemption
    assert departures.hold_jobs_of_who_left() == 1


def test_an_admins_job_in_a_namespace_without_a_role_goes_on(admin: User, vision: Any) -> None:
    make_job(admin, vision)
    assert departures.hold_jobs_of_who_left() == 0


def test_nothing_starts_between_the_end_of_a_role_and_the_next_look(alice: User, vision: Any) -> None:
    from jobs.tasks import dispatch_waiting

    job = make_job(alice, vision)
    leave(alice, vision)
    dispatch_waiting()
    job.refresh_from_db()
    assert job.held_by is not None and job.attempt_number == 0
