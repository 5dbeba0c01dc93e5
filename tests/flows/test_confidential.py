"""A9: nobody outside learns of a confidential project, whichever door they try; and who has left learns nothing new."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.test import Client

from accounts.audit import record
from accounts.models import Membership, User
from jobs.lists import saved
from jobs.models import Job, JobPin
from tests.flows.access_table import ROUTES
from tests.flows.hidden_project import KEY, MADE_UP, MARK, SLUG, Hidden, plant
from tests.flows.test_access_matrix import fill

pytestmark = pytest.mark.django_db
NOWHERE = {
    "job_id": "zzzzzzzzzz",
    "key": "th_000000000000",
    "sha256": "f" * 64,
    "draft_id": "00000000-0000-4000-8000-000000000000",
    "view_id": "999999999",
    "mapping_id": "999999999",
    "user_id": "999999999",
}


MORE = {
    "/jobs/": ("?archived=1", "?sort=position&cols=how,who,tags,id", "?part=counts", "?q=nothing-is-called-so"),
    "/api/v1/jobs/": ("?archived=1", "?limit=1", "?fields=reason,queue_position"),
    "/jobs/export.csv": ("?cols=how,who,tags,id&archived=1",),
    "/api/v1/namespaces/": ("?limit=1",),
}


@pytest.fixture
def looking(dave: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(dave)
    return client


def said(answer: Any) -> str:
    """Everything an answer tells: its head and its body, as text."""

    async def joined() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    if not answer.streaming:
        body = answer.content
    elif answer.is_async:
        body = async_to_sync(joined)()
    else:
        body = b"".join(answer.streaming_content)
    return f"{answer.status_code} {dict(answer.headers)} {body.decode(errors='replace')}"


def alike(text: str, typed: list[str]) -> str:
    """Without what was typed, and without what differs between any two answers."""
    for one in sorted(typed, key=len, reverse=True):
        if not one.isdecimal() or len(one) > 3:  # the number of a person is in every other number too
            text = text.replace(one, "<typed>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
    text = re.sub(r"spec-sha256: [0-9a-f]+", "<of what was typed>", text)
    text = re.sub(r'"[A-Za-z0-9]{64}"|&quot;\w{64}&quot;', "<csrf>", text)
    text = re.sub(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d(:\d\d)?(\.\d+)?|\b\d+(\.\d+)? s\b", "<time>", text)
    return re.sub(r'"silent_seconds": ?[\d.]+|\'Content-Length\': \'\d+\'|Last beat \S+', "<varies>", text)


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def gets() -> list[str]:
    return [route for route, methods in ROUTES.items() if "GET" in methods]


def leak(text: str) -> str:
    at = text.lower().find(MARK)
    return text[max(0, at - 80) : at + 80]


def test_the_mark_is_there_to_be_seen_by_who_may(hidden: Hidden, alice: User) -> None:
    """Or the tests below would pass for nothing."""
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    silent = []
    for route in gets():
        if MARK not in said(client.get(fill(route, hidden.names()))).lower():
            silent.append(route)
    assert {route for route in silent if "<job_id>" in route} <= {
        "/jobs/<job_id>/charts/overview/",
        "/api/v1/jobs/<job_id>/code/",  # packed
    }
    assert not {"/", "/jobs/", "/jobs/new/", "/me/namespaces/", "/me/tokens/", "/api/v1/views/"} & set(silent)


def test_no_page_or_answer_about_ones_own_things_has_a_byte_of_it(own: dict[str, str], looking: Client) -> None:
    wrong = []
    for route in gets():
        for query in ("", *MORE.get(route, ())):
            text = said(looking.get(fill(route, own) + query)).lower()
            if MARK in text:
                wrong.append(f"{route}{query}: {leak(text)}")
    assert not wrong


def test_what_a_cluster_answers_is_told_to_who_sees_every_namespace(
    own: dict[str, str], looking: Client, admin: User
) -> None:
    browser = Client()
    browser.force_login(admin)
    for path in ("/", "/api/v1/clusters/"):
        assert f"{MARK}-pod" in said(browser.get(path))
        text = said(looking.get(path))
        assert "cannot be seen now" in text and MARK not in text


def test_a_waiting_job_says_how_many_are_ahead_and_not_who(own: dict[str, str], looking: Client) -> None:
    why = looking.get(f"/api/v1/jobs/{own['job_id']}/why/").json()
    assert why["position"] == 2 and why["reason"]["code"] == "WaitingForCapacity"
    assert "1 job waits ahead" in why["reason"]["text"]


def test_asking_by_name_is_answered_as_for_what_is_not_there(
    own: dict[str, str], looking: Client, hidden: Hidden
) -> None:
    """Pages and lists with every filter, and every path: equal but for what was typed."""
    real = hidden.names()
    wrong = []
    for route in gets():
        if "<" not in route or route in ("/sdk/<name>", "/admin/runtimes/<slug>/", "/api/v1/runtimes/<slug>/"):
            continue
        fake = {**{name: value.replace(MARK, MADE_UP) for name, value in real.items()}, **NOWHERE}
        wrong += differs(looking, route, fill(route, real), fill(route, fake), real, fake)
    asked = {
        "namespace": (SLUG,),
        "user": (hidden.lead.username,),
        "tag": (f"{MARK}-tag",),
        "q": (hidden.running.name, f"{MARK}-tag", hidden.lead.username, hidden.running.pk),
    }
    about_jobs = {"gpu": (MARK,), "priority": (MARK,), "status": (MARK,), "cursor": (hidden.running.pk,)}
    by_route: dict[str, dict[str, tuple[str, ...]]] = {
        "/jobs/": {**asked, **about_jobs, "part=counts&waits": (hidden.waiting.pk,), "sort": (MARK,)},
        "/jobs/export.csv": asked,
        "/api/v1/jobs/": {**asked, **about_jobs, "fields=name&q": (hidden.running.name,)},
        "/api/v1/jobs/export.csv": asked,
        "/api/v1/sparklines/": {"job": (hidden.running.pk, hidden.waiting.pk)},
        "/jobs/new/": {"from": (hidden.running.pk,), "draft": (hidden.draft_id,), "namespace": (SLUG,)},
        "/audit/": {"namespace": (SLUG,), "actor": (hidden.lead.username,), "target": (hidden.running.pk, SLUG)},
        "/api/v1/audit/": {"namespace": (SLUG,), "actor": (hidden.lead.username,)},
        f"/api/v1/jobs/{own['job_id']}/series/": {"key": (f"{MARK}/loss",)},
    }
    for route, questions in by_route.items():
        for name, values in questions.items():
            for value in values:
                asks, other = f"{route}?{name}=", _made_up(value)
                wrong += differs(looking, asks, asks + value, asks + other, {"": value}, {"": other})
    assert not wrong


def _made_up(value: str) -> str:
    if MARK in value:
        return value.replace(MARK, MADE_UP)
    if len(value) == 64:
        return NOWHERE["sha256"]
    return {36: NOWHERE["draft_id"], 10: NOWHERE["job_id"]}.get(len(value), NOWHERE["view_id"])


def differs(
    client: Client, what: str, path: str, other: str, typed: dict[str, str], others: dict[str, str]
) -> list[str]:
    with undone():
        theirs = said(client.get(path))
    with undone():
        made_up = said(client.get(other))
    theirs, made_up = alike(theirs, list(typed.values())), alike(made_up, list(others.values()))
    if MARK in theirs.lower():
        return [f"{what}: {leak(theirs)}"]
    if theirs != made_up:
        at = next((i for i, (a, b) in enumerate(zip(theirs, made_up, strict=False)) if a != b), 0)
        return [f"{what}: {theirs[max(0, at - 60) : at + 60]!r} is not {made_up[max(0, at - 60) : at + 60]!r}"]
    return []


def posts(real: dict[str, str], commons_name: str, job: str) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Path, body and headers of what a stranger might send, with what they might have heard of."""
    plain = {"runtime": "shell", "command": "true", "name": "mine", "namespace": commons_name}
    form = {**plain, "workers": "1", "gpus": "0", "code_kind": "files", "written": "form"}
    there = {"namespace": real["name"]}
    upload = {"code_kind": "upload", "upload_sha256": real["sha256"], "upload_label": "x"}
    return [
        ("/api/v1/jobs/", {**plain, **there}, {}),
        ("/api/v1/jobs/", plain, {"Idempotency-Key": real["idempotency"]}),
        ("/api/v1/jobs/", {**plain, "code": {"upload": real["sha256"]}}, {}),
        ("/api/v1/jobs/", {**plain, "priority": real["name"]}, {}),
        ("/api/v1/jobs/", {**plain, "runtime": real["name"]}, {}),
        ("/api/v1/jobs/", {**plain, "resources": {"gpus": 1}}, {}),
        (f"/api/v1/jobs/{job}/clone/", {"set": there}, {}),
        ("/api/v1/forecast/", {**plain, **there}, {}),
        ("/api/v1/forecast/", {**plain, "resources": {"gpus": 1}}, {}),
        ("/api/v1/views/", {"name": "v", "query": f"namespace={real['name']}", **there}, {}),
        ("/api/v1/tokens/", {"name": "t", "scope": "read", "days": 1, **there}, {}),
        ("/api/v1/drafts/", {"values": {**there, "parent": real["job_id"], **upload}}, {}),
        ("/api/v1/jobs/bulk/", {"action": "stop", "ids": [real["job_id"]]}, {}),
        ("/form/jobs/bulk/", {"action": "tag", "tags": "x", "ids": [real["job_id"]]}, {}),
        ("/form/jobs/new/", {**form, **there}, {}),
        ("/form/jobs/new/", {**form, "parent": real["job_id"], "draft": real["draft_id"]}, {}),
        ("/form/jobs/new/", {**form, "parent": real["job_id"], "command": "", **upload}, {}),
        ("/form/jobs/forecast/", {**form, **there}, {}),
        ("/form/jobs/forecast/", {**form, "gpus": "1"}, {}),
        ("/form/jobs/preview/", {**form, **there}, {}),
        ("/form/jobs/preview/", {**form, **upload}, {}),
        ("/form/jobs/document/", {**form, **there, "parent": real["job_id"]}, {}),
        ("/form/jobs/document/", {**form, **upload, "command": "python trian.py"}, {}),
        ("/form/jobs/sample/", there, {}),
        ("/form/jobs/views/", {"name": "v", "query": f"namespace={real['name']}", **there}, {}),
        ("/form/me/tokens/", {"name": "t", "scope": "read", "days": 1, **there}, {}),
        (f"/form/jobs/{real['job_id']}/stop/", {}, {}),
        (f"/form/jobs/{real['job_id']}/pin/", {}, {}),
        (f"/form/jobs/{real['job_id']}/layout/", {"layout": "{}"}, {}),
        (f"/api/v1/jobs/{real['job_id']}/clone/", {"set": {"namespace": commons_name}}, {}),
        (f"/api/v1/namespaces/{real['name']}/members/", {"username": "dave", "role": "viewer"}, {}),
        (f"/api/v1/namespaces/{commons_name}/members/", {"username": real["username"], "role": "viewer"}, {}),
    ]


def test_sending_by_name_is_answered_as_for_what_is_not_there(own: dict[str, str], dave: User, hidden: Hidden) -> None:
    real = {**hidden.names(), "idempotency": KEY}
    fake = {**{name: value.replace(MARK, MADE_UP) for name, value in real.items()}, **NOWHERE}
    wrong = []
    ours, made_up = (posts(names, own["name"], own["job_id"]) for names in (real, fake))
    for (path, body, headers), (other_path, other_body, other_headers) in zip(ours, made_up, strict=True):
        texts = []
        for one, sent, head, typed in (
            (path, body, headers, real),
            (other_path, other_body, other_headers, fake),
        ):
            with undone():
                client = Client(raise_request_exception=False)
                client.force_login(dave)
                answer = post(client, one, sent, head)
                # a new job has an id of its own, and a new token its characters
                fresh = [*Job.objects.order_by("-created_at").values_list("pk", flat=True)[:1]]
                texts.append(
                    re.sub(r"th_\w+|\bt[0-9a-z]{7,}\b", "<token>", alike(said(answer), [*typed.values(), *fresh]))
                )
        if MARK in texts[0].lower():
            wrong.append(f"{path}: {leak(texts[0])}")
        elif texts[0] != texts[1]:
            at = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
            wrong.append(
                f"{path}: {texts[0][max(0, at - 60) : at + 60]!r} is not {texts[1][max(0, at - 60) : at + 60]!r}"
            )
    assert not wrong


def post(client: Client, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    if path.startswith("/form/"):
        return client.post(path.removeprefix("/form"), body, headers=headers)
    return client.post(path, json.dumps(body), content_type="application/json", headers=headers)


def test_the_trail_of_a_lead_has_nothing_of_another_project(
    own: dict[str, str], looking: Client, hidden: Hidden, alice: User
) -> None:
    """Also where somebody of both takes a thing from one into the other."""
    view = saved.save(user=alice, name=f"{MARK} second", query=f"tag={MARK}-tag", namespace=SLUG)
    saved.change(view, user=alice, name="harmless", query="status=failed", namespace="commons")
    saved.change(view, user=alice, name=f"{MARK} again", query=f"tag={MARK}-tag", namespace=SLUG)
    record(alice, "job.stop", target=hidden.running.pk, namespace=SLUG, after={"note": MARK})
    for path in ("/audit/", "/audit/export.csv", "/api/v1/audit/"):
        text = said(looking.get(path)).lower()
        assert "view.change" in text
        assert MARK not in text, f"{path}: {leak(text)}"


@pytest.fixture
def left(alice: User, bob: User) -> Hidden:
    """Bob was in it, and is not any more; what happens there since is not for him."""
    hidden = plant(alice, secret_people=(bob,))
    browser = Client()
    browser.force_login(bob)
    document = {"namespace": SLUG, "runtime": "shell", "command": "true", "name": "bobs"}
    made = browser.post(
        "/api/v1/jobs/", document, content_type="application/json", headers={"Idempotency-Key": "bobs-key"}
    )
    assert made.status_code == 201
    JobPin.objects.create(user=bob, job_id=made.json()["id"])
    JobPin.objects.create(user=bob, job=hidden.running)
    Membership.objects.filter(user=bob, namespace=hidden.project).delete()
    Job.objects.filter(pk=made.json()["id"]).update(name=f"{MARK}-renamed", notes=MARK, tags=[MARK], reason=MARK)
    return hidden


def test_who_has_left_learns_nothing_new(left: Hidden, bob: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(bob)
    job = Job.objects.get(owner=bob)
    values = {**left.names(), "job_id": job.pk, "name": "bob"}
    wrong = []
    for route in gets():
        text = said(client.get(fill(route, values))).lower().replace(SLUG, "<known to him>")
        if MARK in text:
            wrong.append(f"{route}: {leak(text)}")
    form = {"namespace": "bob", "runtime": "shell", "command": "false", "name": "new", "workers": "1", "gpus": "0"}
    form |= {"code_kind": "none", "written": "form"}
    for path, body in (
        ("/form/jobs/new/", {**form, "idempotency_key": "bobs-key", "parent": job.pk}),
        ("/api/v1/jobs/", {**form, "workers": 1, "gpus": 0}),
        ("/form/jobs/bulk/", {"action": "hold", "ids": [job.pk]}),
    ):
        text = said(post(client, path, body, {"Idempotency-Key": "bobs-key"})).lower()
        if MARK in text:
            wrong.append(f"{path}: {leak(text)}")
    assert not wrong
