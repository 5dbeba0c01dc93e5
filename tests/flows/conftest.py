"""The stages of these stories: the whole cast and what of alice's they ask for; and a project that dave may not learn of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from accounts import tokens
from accounts.models import ApiToken, GroupMapping, Membership, Namespace, User
from accounts.people import ensure_person
from accounts.roles import Role, SiteRole
from jobs import archives, dispatch, shared_secrets, shared_volumes
from jobs.models import Draft, Job, NamespaceSecret, NamespaceVolume, Runtime, SavedView
from portal import seed
from tests.factories import leave_file, make_job
from tests.flows.hidden_project import Hidden, commons, job_beside, plant


@dataclass
class Stage:
    """The people, and the things of alice's that they ask for."""

    people: dict[str, User | None]
    job: Job
    token: ApiToken
    draft: Draft
    view_id: int = 0
    mapping_id: int = 0
    membership_id: int = 0

    def client(self, who: str) -> Client:
        client = Client(raise_request_exception=False)
        if person := self.people[who]:
            client.force_login(person)
        return client

    def real(self) -> dict[str, str]:
        return {
            "job_id": self.job.pk,
            "name": "vision",
            "key": self.token.token_key,
            "sha256": "0" * 64,
            "slug": "shell",
            "draft_id": str(self.draft.pk),
            "view_id": str(self.view_id),
            "mapping_id": str(self.mapping_id),
            "membership_id": str(self.membership_id),
            "user_id": str(self.job.owner_id),
            "username": "bob",
            "path": "out/model.txt",
            "secret": "team-keys",
            "volume": "datasets",
        }

    def state(self) -> tuple[Any, ...]:
        """What nobody may change who may not."""
        return (
            list(Job.objects.order_by("pk").values_list("pk", "version", "cancel_requested_at", "held_by_id")),
            list(ApiToken.objects.order_by("pk").values_list("pk", "revoked_at")),
            list(Membership.objects.order_by("pk").values_list("pk", "role", "ends_at")),
            list(Namespace.objects.order_by("pk").values_list("pk", "gpu_limit")),
            list(GroupMapping.objects.order_by("pk").values_list("pk", "group", "role", "site_role")),
            list(Draft.objects.order_by("pk").values_list("pk", "values")),
            list(SavedView.objects.order_by("pk").values_list("pk", "name", "namespace_id")),
            list(Runtime.objects.order_by("pk").values_list("pk", "version")),
            list(NamespaceSecret.objects.order_by("pk").values_list("pk", "name", "key", "set_at")),
            list(NamespaceVolume.objects.order_by("pk").values_list("pk", "name", "path", "set_at")),
            list(User.objects.order_by("pk").values_list("pk", "site_role", "is_active", "password")),
        )


@pytest.fixture
def stage(vision: Namespace, alice: User, bob: User, carol: User, dave: User, admin: User) -> Stage:
    viewer = ensure_person("vera")
    Membership.objects.create(user=viewer, namespace=vision, role=Role.VIEWER)
    people = {
        "nobody": None,
        "stranger": dave,
        "viewer": viewer,
        "member": bob,
        "owner": alice,
        "lead": carol,
        "auditor": ensure_person("erin", site_role=SiteRole.AUDITOR),
        "admin": admin,
    }
    seed.ensure_runtime("shell")
    token, _text = tokens.issue(alice, name="laptop", scope="read", days=30)
    job = make_job(alice, vision, code=archives.from_files({"train.py": "print(1)"}))
    leave_file(job, "out/model.txt", b"weights")
    view = SavedView.objects.create(
        pk=777000777, owner=alice, namespace=vision, name="team queue", query="status=queued"
    )
    draft = Draft.objects.create(owner=alice, values={"name": "half"})
    rule = GroupMapping.objects.create(pk=777000778, group="vision", namespace=vision, role=Role.MEMBER)
    by_hand = Membership.objects.get(user=bob, namespace=vision)
    shared_secrets.put(vision, "team-keys", {"values": {"wandb": "cadmium"}}, by=carol, request=None)
    shared_volumes.put(vision, "datasets", {"path": "/data"}, by=admin, request=None)
    return Stage(
        people=people,
        job=job,
        token=token,
        draft=draft,
        view_id=view.pk,
        mapping_id=rule.pk,
        membership_id=by_hand.pk,
    )


@pytest.fixture
def hidden(alice: User) -> Hidden:
    return plant(alice)


@pytest.fixture
def own(hidden: Hidden, alice: User, dave: User) -> dict[str, str]:
    """What dave has: a project that he leads and alice works in, where a job waits behind the hidden one."""
    project = commons((dave, Role.LEAD), (alice, Role.MEMBER))
    job = job_beside(dave, project, hidden)
    leave_file(job, "out/plain.txt", b"plain")
    view = SavedView.objects.create(owner=dave, namespace=project, name="plain", query="status=queued")
    draft = Draft.objects.create(owner=dave, values={"name": "plain"})
    dispatch.admit_waiting()
    return {
        **hidden.names(),
        "job_id": job.pk,
        "name": project.slug,
        "draft_id": str(draft.pk),
        "view_id": str(view.pk),
        "path": "out/plain.txt",
    }
