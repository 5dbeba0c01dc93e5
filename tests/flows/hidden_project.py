"""A project that nobody outside may learn of, with the same mark in every text that it has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from accounts import tokens
from accounts.models import AuditEvent, DirectorySync, GroupMapping, Membership, MembershipChange, Namespace, User
from accounts.people import ensure_person, ensure_project
from accounts.roles import Role
from jobs import shared_secrets, shared_volumes
from jobs.cluster.port import RawLine
from jobs.logs.lines import store_lines
from jobs.models import Cluster, Job, JobEvent, JobPin, SavedView, Worker
from jobs.states import JobStatus, Reason
from metrics.models import ChartLayout
from portal import seed
from tests.factories import leave_file, make_attempt, make_job
from tests.metrics.makers import report

MARK = "zq7orchid"  # in every text of the hidden project
MADE_UP = "xk4maples"  # as long: what is asked for with it is not there
SLUG = f"{MARK}-merger"
KEY = f"{MARK}-nightly"  # an Idempotency-Key


@dataclass
class Hidden:
    """What a stranger might have heard of: names, ids and digests."""

    project: Namespace
    running: Job
    waiting: Job
    lead: User
    alice: User
    view: SavedView
    draft_id: str
    token_key: str
    sha256: str
    mapping_id: int

    def names(self) -> dict[str, str]:
        return {
            "job_id": self.running.pk,
            "name": SLUG,
            "key": self.token_key,
            "sha256": self.sha256,
            "slug": "shell",
            "draft_id": self.draft_id,
            "view_id": str(self.view.pk),
            "mapping_id": str(self.mapping_id),
            "user_id": str(self.lead.pk),
            "username": self.lead.username,
            "path": f"out/{MARK}-model.txt",
            "secret": f"{MARK}-keys",
            "volume": f"{MARK}-data",
        }


def plant(alice: User, *, secret_people: tuple[User, ...] = ()) -> Hidden:
    """Through the doors that people use, as far as there is one; rows that only clusters and directories make are written."""
    seed.ensure_priorities()
    seed.ensure_runtime("shell")
    cluster = seed.ensure_clusters()[0]
    _one_small_node(cluster)
    lead = ensure_person(f"{MARK}-lead")
    User.objects.filter(pk=lead.pk).update(
        display_name=f"{MARK} Lead", email=f"{MARK}@example.org", directory_dn=f"cn={MARK}", directory_groups=[MARK]
    )
    members: dict[str, Role] = {alice.username: Role.MEMBER, lead.username: Role.LEAD}
    project = ensure_project(SLUG, members=members | {one.username: Role.MEMBER for one in secret_people})
    Namespace.objects.filter(pk=project.pk).update(description=f"{MARK} buys a rival", made_for=f"{MARK}-group")
    project.refresh_from_db()

    browser = Client(raise_request_exception=False)
    browser.force_login(alice)
    sha256 = _sent(browser.post("/api/v1/uploads/", {"file": SimpleUploadedFile("train.py", MARK.encode())}))["sha256"]
    document = {
        "namespace": SLUG,
        "runtime": "shell",
        "name": f"{MARK}-job",
        "command": f"echo {MARK} {{{{{MARK}}}}}",
        "parameters": {MARK: MARK},
        "env": {MARK.upper(): MARK, "PLAIN": MARK},
        "secrets": {f"{MARK.upper()}_KEY": {"value": MARK}},
        "code": {"upload": sha256},
        "tags": [f"{MARK}-tag"],
        "charts": {"pin": [MARK]},
        "resources": {"gpus": 1},
    }
    ids = [
        _json(browser, "post", "/api/v1/jobs/", {**document, "name": f"{MARK}-{kind}"}, **{"Idempotency-Key": key})[
            "id"
        ]
        for kind, key in (("running", KEY), ("waiting", ""))
    ]
    for job_id in ids:
        _json(browser, "patch", f"/api/v1/jobs/{job_id}/", {"notes": f"**{MARK}**"})
    view = _json(
        browser, "post", "/api/v1/views/", {"name": f"{MARK} view", "query": f"tag={MARK}-tag", "namespace": SLUG}
    )
    draft = _json(browser, "post", "/api/v1/drafts/", {"values": {"name": f"{MARK}-draft", "namespace": SLUG}})
    token, _text = tokens.issue(alice, name=f"{MARK} token", scope="submit", days=1, namespace=SLUG)

    running, waiting = (Job.objects.get(pk=job_id) for job_id in ids)
    _let_run(running)
    Job.objects.filter(pk=waiting.pk).update(queued_at=timezone.now() - timedelta(hours=1))
    leave_file(running, f"out/{MARK}-model.txt", MARK.encode())
    ChartLayout.objects.create(namespace=project, owner=None, layout={"pins": [MARK], "hidden": [MARK]})
    JobPin.objects.create(job=running, user=lead)
    mapping = GroupMapping.objects.create(group=f"cn={MARK}", namespace=project, role=Role.MEMBER)
    Membership.objects.create(user=alice, namespace=project, role=Role.MEMBER, source=f"ldap:cn={MARK}")
    MembershipChange.objects.create(user=lead, namespace=project, before="", after="lead")
    DirectorySync.objects.create(problems=[f"{MARK} is nowhere"])
    AuditEvent.objects.create(
        actor=lead.username, action="namespace.change", target=SLUG, namespace=SLUG, after={MARK: MARK}
    )
    shared_volumes.put(project, f"{MARK}-data", {"path": f"/{MARK}"}, by=lead, request=None)
    shared_secrets.put(project, f"{MARK}-keys", {"values": {MARK: MARK}}, by=lead, request=None)
    running.refresh_from_db()
    waiting.refresh_from_db()
    return Hidden(
        project, running, waiting, lead, alice, SavedView.objects.get(pk=view["id"]), draft["id"], token.token_key, sha256,
        mapping.pk,
    )  # fmt: skip


def _one_small_node(cluster: Cluster) -> None:
    node = {"name": "node-0", "gpus": 1, "gpu_type": "A100", "cpu_millis": 64_000, "memory_bytes": 2**38, "ready": True}
    trouble = f'pods "{MARK}-pod" is forbidden in the namespace "p-{SLUG}"'
    Cluster.objects.filter(pk=cluster.pk).update(nodes=[node], seen_at=timezone.now(), error=trouble)


def _let_run(job: Job) -> None:
    """It holds the only GPU, and has lines, points, and a failed attempt behind it."""
    cause = {
        "kind": "unknown",
        "owner": "unknown",
        "code": "NonZeroExit",
        "text": MARK,
        "steps": [MARK],
        "values": {"words": MARK},
        "worker": "worker-0",
        "evidence": None,
        "others": [],
        "more_others": 0,
        "changes": {},
    }
    make_attempt(job, number=1, ended_at=timezone.now(), reason=MARK, reason_code=Reason.NON_ZERO_EXIT, cause=cause)
    attempt = make_attempt(job, number=2, started_at=timezone.now(), released_at=timezone.now())
    Worker.objects.filter(attempt=attempt).update(pod_name=f"{MARK}-pod", node="node-0", message=MARK, reason=MARK)
    Job.objects.filter(pk=job.pk).update(
        status=JobStatus.RUNNING, attempt_number=2, started_at=timezone.now(), reason=MARK, cancel_note=MARK
    )
    store_lines(attempt, attempt.workers.get(), [RawLine(1, 1.0, f"{MARK} step=1 loss=0.5")])
    report(job, {f"{MARK}/loss": [(1, 0.5), (2, 0.25)]}, attempt=2)
    JobEvent.objects.create(job=job, reason=MARK, actor=f"{MARK}-lead")


def commons(*people: tuple[User, Role]) -> Namespace:
    """Where a stranger to the hidden project meets some of its people."""
    return ensure_project("commons", members={person.username: role for person, role in people})


def job_beside(owner: User, namespace: Namespace, hidden: Hidden) -> Job:
    """One that waits for the GPU which the hidden project has, and was cloned out of it."""
    job: Job = make_job(owner, namespace, name="plain", parent=hidden.running)
    Job.objects.filter(pk=job.pk).update(gpus=1)
    job.refresh_from_db()
    return job


def _json(client: Client, method: str, path: str, body: Any, **headers: str) -> Any:
    return _sent(getattr(client, method)(path, body, content_type="application/json", headers=headers))


def _sent(answer: Any) -> Any:
    assert answer.status_code in (200, 201), (answer.status_code, answer.content[:500])
    return answer.json()
