"""A role that has ended counts nowhere from that second on, while its row still stands: pages, REST, tokens, sockets, jobs."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from accounts import access, tokens
from accounts.models import Membership as Row
from accounts.models import MembershipChange, Namespace, User
from accounts.roles import Verb
from jobs.departures import hold_jobs_of_who_left
from jobs.lists.sight import Sight
from jobs.models import Job
from metrics import rights
from tests.factories import make_job
from tests.flows.access_table import ROUTES
from tests.flows.conftest import Stage
from tests.flows.test_access_matrix import ask, undone

pytestmark = pytest.mark.django_db

OURS = ("accounts", "jobs", "metrics", "portal")
# a join sees also what has ended
JOINED = re.compile(r"memberships?__(?!user\b)|also_ended|_base_manager")
MAY = {
    "accounts/models.py",
    "accounts/members.py",
    "accounts/people.py",
}  # the rows themselves; a name that was given once


def let_end(person: User, place: Namespace) -> None:
    assert Row.objects.filter(user=person, namespace=place, source="manual").update(
        ends_at=timezone.now() - timedelta(milliseconds=1)
    )


def test_nothing_asks_for_roles_but_through_the_manager_that_leaves_out_what_has_ended() -> None:
    found = []
    for app in OURS:
        for path in sorted((settings.BASE_DIR / app).rglob("*.py")):
            name = str(path.relative_to(settings.BASE_DIR))
            if name not in MAY and "migrations" not in name and JOINED.search(path.read_text()):
                found.append(name)
    assert not found, f"ask Membership.objects instead: {found}"
    assert all(Path(settings.BASE_DIR, name).exists() and JOINED.search(Path(name).read_text()) for name in MAY)


@pytest.mark.parametrize("who", ["viewer", "member", "owner", "lead"])
def test_every_route_answers_as_to_a_stranger(stage: Stage, vision: Namespace, who: str) -> None:
    person = stage.people[who]
    assert person is not None
    let_end(person, vision)
    wrong = []
    for route, methods in ROUTES.items():
        for method, rule in methods.items():
            if not rule.hides or rule.who == {"owner"}:
                continue
            with undone():
                before = stage.state()
                answer = ask(stage.client(who), method, route, stage.real())
                if answer.status_code != 404 or stage.state() != before:
                    wrong.append(f"{method} {route}: {answer.status_code}")
    # what is one's own stays so: a view that alice saved, wherever she shared it
    own = [] if who != "owner" else [one for one in wrong if "/views/" in one]
    assert wrong == own


def test_every_question_about_rights_agrees(stage: Stage, vision: Namespace, bob: User, carol: User, rf: Any) -> None:
    job = make_job(bob, vision)
    let_end(bob, vision)
    let_end(carol, vision)
    assert access.visible_namespace_ids(bob) == {bob.personal_namespace.pk} == Sight(bob).visible
    assert access.role_in(bob, vision) is None and vision.pk not in access.roles_of(bob)
    assert not any(access.may(bob, verb, vision, owns=True) for verb in Verb)
    assert [place.slug for place in access.namespaces_for(bob)] == ["bob"]
    assert [place.namespace.slug for place in access.places_of(bob)] == ["bob"]
    Namespace.objects.filter(pk=vision.pk).update(is_listed=True)
    offer = next(one for one in access.offers_for(bob) if one.namespace == vision)
    assert offer.leads == ()  # carol leads it no more
    assert job not in Job.objects.visible_to(bob)
    assert not bob.memberships.filter(namespace=vision).exists()
    client = stage.client("member")
    assert client.get("/jobs/").context["navigation"]["namespaces"] == [bob.personal_namespace]
    assert client.get("/api/v1/jobs/").json()["results"] == []
    session = rights.of_session(client.session.session_key or "")
    assert session is not None and not session.reach(vision.pk)


def test_a_token_that_is_bound_to_it_opens_nothing(stage: Stage, vision: Namespace, bob: User, client: Any) -> None:
    _row, text = tokens.issue(bob, name="ci", scope="submit", days=1, namespace="vision")
    headers = {"Authorization": f"Bearer {text}"}
    assert client.get(f"/api/v1/jobs/{stage.job.pk}/", headers=headers).status_code == 200
    let_end(bob, vision)
    assert client.get(f"/api/v1/jobs/{stage.job.pk}/", headers=headers).status_code == 404
    document = {"namespace": "vision", "runtime": "shell", "command": "true"}
    sent = client.post("/api/v1/jobs/", document, content_type="application/json", headers=headers)
    assert sent.status_code in (403, 404, 422) and not Job.objects.filter(owner=bob).exists()


def test_a_waiting_job_is_held_without_waiting_for_the_row_to_go(vision: Namespace, bob: User) -> None:
    job = make_job(bob, vision)
    let_end(bob, vision)
    assert not MembershipChange.objects.filter(handled_at=None).exists()
    assert hold_jobs_of_who_left() == 1
    assert Job.objects.get(pk=job.pk).reason_code == "OwnerLeft"
