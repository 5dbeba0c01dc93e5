"""Revoking a token, and undoing that within seconds (A12)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from accounts import tokens
from accounts.models import ApiToken, AuditEvent, User
from jobs import archives
from portal.tasks import clear_expired

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(alice: User) -> tuple[ApiToken, str]:
    return tokens.issue(alice, name="laptop", scope="read", days=30)


def status(text: str) -> int:
    return Client().get("/api/v1/tokens/current/", headers={"Authorization": f"Bearer {text}"}).status_code


def test_it_fails_at_once_and_lives_again_after_an_undo(
    client: Client, alice: User, token: tuple[ApiToken, str]
) -> None:
    row, text = token
    client.force_login(alice)
    assert status(text) == 200
    client.post(f"/me/tokens/{row.token_key}/revoke/")
    assert status(text) == 401
    page = client.get("/me/tokens/").content.decode()
    assert "laptop is revoked" in page
    assert client.get("/api/v1/tokens/").json()["results"] == []
    client.post(f"/me/tokens/{row.token_key}/restore/")
    assert status(text) == 200
    assert list(AuditEvent.objects.filter(target=row.token_key).values_list("action", flat=True)) == [
        "token.restore",
        "token.revoke",
        "token.create",
    ]


def test_later_it_stays_revoked_and_the_page_says_so(client: Client, alice: User, token: tuple[ApiToken, str]) -> None:
    row, text = token
    client.force_login(alice)
    tokens.revoke(alice, row.token_key)
    ApiToken.objects.update(revoked_at=timezone.now() - tokens.UNDO_FOR)
    answer = client.post(f"/me/tokens/{row.token_key}/restore/", follow=True)
    assert "too late" in answer.content.decode()
    assert status(text) == 401


def test_nobody_else_undoes_it(client: Client, bob: User, alice: User, token: tuple[ApiToken, str]) -> None:
    row, text = token
    tokens.revoke(alice, row.token_key)
    client.force_login(bob)
    client.post(f"/me/tokens/{row.token_key}/restore/")
    assert status(text) == 401


def test_the_row_goes_after_a_while(alice: User, token: tuple[ApiToken, str]) -> None:
    tokens.revoke(alice, token[0].token_key)
    clear_expired()
    assert ApiToken.objects.exists()
    ApiToken.objects.update(revoked_at=timezone.now() - timedelta(hours=2))
    clear_expired()
    assert not ApiToken.objects.exists()


def test_loading_the_answer_again_makes_no_second_token(client: Client, alice: User) -> None:
    client.force_login(alice)
    page = client.get("/me/tokens/").context["page"]
    wanted = {"name": "ci", "scope": "read", "days": 30, "page": page}
    assert client.post("/me/tokens/", wanted).status_code == 201
    again = client.post("/me/tokens/", wanted, follow=True)
    assert "made already" in again.content.decode()
    assert tokens.living(alice).count() == 1
    assert client.post("/me/tokens/", wanted | {"page": again.context["page"]}).status_code == 201


class TestBound:
    """A token of one namespace: its person in it, and nobody anywhere else."""

    @pytest.fixture
    def bound(self, alice: User, vision: Any, speech: Any) -> Any:
        from accounts.models import Membership

        Membership.objects.create(user=alice, namespace=speech, role="member")

        def ask(method: str, path: str, *, scope: str = "admin", **body: Any) -> Any:
            _token, text = tokens.issue(alice, name="ci", scope=scope, days=1, namespace="vision")
            more = {"data": body, "content_type": "application/json"} if method != "get" else {}
            return getattr(Client(), method)(f"/api/v1/{path}", **more, headers={"Authorization": f"Bearer {text}"})

        return ask

    def test_it_sees_its_namespace_and_no_other(self, bound: Any, alice: User, vision: Any, speech: Any) -> None:
        from tests.factories import make_job

        here, there = make_job(alice, vision), make_job(alice, speech)
        assert [one["name"] for one in bound("get", "namespaces/").json()["results"]] == ["vision"]
        assert [one["id"] for one in bound("get", "jobs/").json()["results"]] == [here.pk]
        assert bound("get", f"jobs/{here.pk}/").status_code == 200
        for path in (f"jobs/{there.pk}/", f"jobs/{there.pk}/logs/", "namespaces/speech/", "namespaces/alice/members/"):
            assert bound("get", path).status_code == 404, path
        assert bound("post", f"jobs/{there.pk}/cancel/").status_code == 404
        assert bound("get", "tokens/current/").json()["namespace"] == "vision"

    def test_it_submits_there_only(self, bound: Any, numpy_runtime: Any) -> None:
        from portal import seed

        seed.ensure_priorities()
        seed.ensure_clusters()
        document = {"runtime": "numpy", "command": "true"}
        assert bound("post", "jobs/", namespace="vision", **document).status_code == 201
        refused = bound("post", "jobs/", namespace="speech", **document)
        assert refused.status_code in (403, 404, 422)

    def test_an_idempotency_key_finds_no_job_elsewhere(self, bound: Any, alice: User, numpy_runtime: Any) -> None:
        from portal import seed

        seed.ensure_priorities()
        seed.ensure_clusters()
        document = {"runtime": "numpy", "command": "true", "namespace": "speech"}
        _token, anywhere = tokens.issue(alice, name="all", scope="submit", days=1)
        _token, here = tokens.issue(alice, name="ci", scope="submit", days=1, namespace="vision")
        answers = [
            Client().post(
                "/api/v1/jobs/",
                document,
                content_type="application/json",
                headers={"Authorization": f"Bearer {text}", "Idempotency-Key": "nightly"},
            )
            for text in (anywhere, anywhere, here)
        ]
        assert [answer.status_code for answer in answers] == [201, 200, 409]

    def test_it_finds_only_code_that_came_with_such_a_token(
        self, bound: Any, alice: User, vision: Any, speech: Any, numpy_runtime: Any
    ) -> None:
        """A digest is no secret: what alice sent from her browser, or with another token, is not there for this one."""
        from portal import seed
        from tests.factories import make_job

        seed.ensure_priorities()
        seed.ensure_clusters()

        def client_of(namespace: str | None) -> Client:
            _token, text = tokens.issue(alice, name="ci", scope="submit", days=1, namespace=namespace)
            return Client(headers={"Authorization": f"Bearer {text}"})

        def send(client: Client, body: bytes) -> str:
            file = SimpleUploadedFile("train.py", body)
            return str(client.post("/api/v1/uploads/", {"file": file}).json()["sha256"])

        def submit(client: Client, digest: str, namespace: str = "vision") -> int:
            document = {"namespace": namespace, "runtime": "numpy", "command": "true", "code": {"upload": digest}}
            return client.post("/api/v1/jobs/", document, content_type="application/json").status_code

        browser = Client()
        browser.force_login(alice)
        anywhere, here, again, there = (client_of(name) for name in (None, "vision", "vision", "speech"))
        for elsewhere in (browser, anywhere, there):
            digest = send(elsewhere, f"print({elsewhere!r})".encode())
            assert submit(here, digest) == 422
            assert submit(anywhere, digest) == 201
        own = send(here, b"print('here')")
        assert submit(here, own) == submit(again, own) == 201
        assert submit(there, own, "speech") == 422
        assert submit(anywhere, own) == submit(browser, own) == 201
        # what a job of the namespace runs is there for everybody who sees that job
        shared = archives.from_files({"shared.py": "print(1)"})
        assert submit(here, shared.pk) == 422
        make_job(alice, speech, code=shared)
        assert submit(here, shared.pk) == 422
        make_job(alice, vision, code=shared)
        assert submit(here, shared.pk) == 201

    def test_what_belongs_to_no_namespace_is_out_of_its_reach(self, bound: Any, admin: User) -> None:
        reads, writes = ("tokens/", "drafts/", "audit/"), ("tokens/", "runtimes/", "sync/")
        for method, path in (*(("get", path) for path in reads), *(("post", path) for path in writes)):
            answer = bound(method, path)
            assert answer.status_code == 403 and answer.json()["error"]["code"] == "token_is_bound", path
        assert bound("get", "runtimes/").status_code == 200

    def test_an_admins_is_no_admin_elsewhere(self, admin: User, alice: User, vision: Any, speech: Any) -> None:
        from tests.factories import make_job

        job = make_job(alice, speech)
        _token, text = tokens.issue(admin, name="ci", scope="admin", days=1, namespace="vision")
        client = Client(headers={"Authorization": f"Bearer {text}"})
        assert client.get(f"/api/v1/jobs/{job.pk}/").status_code == 404
        assert client.get("/api/v1/jobs/").json()["results"] == []

    def test_it_is_made_on_the_page_and_by_rest_for_ones_own_only(self, alice: User, vision: Any, speech: Any) -> None:
        client = Client()
        client.force_login(alice)
        page = client.post("/me/tokens/", {"name": "ci", "scope": "read", "days": 1, "namespace": "vision"})
        assert page.status_code == 201
        assert [token.namespace for token in tokens.living(alice)] == [vision]
        assert (
            client.post("/me/tokens/", {"name": "ci", "scope": "read", "days": 1, "namespace": "speech"}).status_code
            == 400
        )
        body = client.post("/api/v1/tokens/", {"name": "x", "namespace": "speech"}, content_type="application/json")
        assert body.status_code == 400 and "namespace" in body.json()["error"]["fields"]
