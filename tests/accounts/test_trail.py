"""The audit trail as a page and a file: filters, whose rows, older ones, and nothing a spreadsheet would compute (A13)."""

from __future__ import annotations

import ast
import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts import audit, trail
from accounts.models import AuditEvent, User

pytestmark = pytest.mark.django_db
PAGE, FILE = "/audit/", "/audit/export.csv"
ROOT = Path(__file__).resolve().parent.parent.parent
WRITERS = ("record", "event", "_audit", "_tell")


@pytest.fixture
def desk(admin: User, alice: User, carol: User, vision: Any, speech: Any) -> Client:
    audit.record(alice, "job.submit", target="aaaaaaaaaa", namespace="vision", after={"name": "vit"})
    audit.record(alice, "job.cancel", target="aaaaaaaaaa", namespace="vision")
    audit.record(carol, "token.create", target="th_1")
    audit.record(None, "membership.delete", target="dave", namespace="speech", before={"role": "member"})
    client = Client()
    client.force_login(admin)
    return client


def told(client: Client, **query: str) -> list[str]:
    return [f"{row.actor} {row.action}" for row in client.get(PAGE, query).context["rows"]]


def file(client: Client, **query: str) -> bytes:
    async def all_of(pieces: Any) -> bytes:
        return b"".join([piece async for piece in pieces])

    return async_to_sync(all_of)(client.get(FILE, query).streaming_content)


def test_filters_narrow_and_combine(desk: Client) -> None:
    assert told(desk, actor="alice") == ["alice job.cancel", "alice job.submit"]
    assert told(desk, action="job.submit") == ["alice job.submit"]
    assert told(desk, action="job") == told(desk, action="job.") == ["alice job.cancel", "alice job.submit"]
    assert told(desk, namespace="speech", target="DAV") == [" membership.delete", " membership.create"]
    assert told(desk, actor="alice", namespace="speech") == []
    assert told(desk, since="2099-01-01") == [] and len(told(desk, until="2099-01-01")) > 4


def test_a_time_that_cannot_be_read_is_said_at_its_field(desk: Client) -> None:
    for wrong in ("yesterday", "2026-13-40", "9" * 30, "2026-11-30T99:00"):
        answer = desk.get(PAGE, {"since": wrong})
        assert answer.status_code == 400 and list(answer.context["wrong"]) == ["since"], wrong


def test_older_rows_follow_without_a_gap(desk: Client) -> None:
    for number in range(120):
        audit.record(None, "x.y", target=str(number))
    seen: list[str] = []
    before = ""
    while True:
        context = desk.get(PAGE, {"action": "x.y", **({"before": before} if before else {})}).context
        seen += [row.target for row in context["rows"]]
        if not context["older"]:
            break
        before = str(context["older"])
    assert seen == [str(number) for number in reversed(range(120))]


def test_a_lead_reads_the_rows_of_what_they_lead_and_a_member_none(desk: Client, carol: User, alice: User) -> None:
    lead, member = Client(), Client()
    lead.force_login(carol)
    member.force_login(alice)
    assert {row.namespace for row in lead.get(PAGE).context["rows"]} == {"vision"}
    assert told(lead, namespace="speech") == []
    assert b"speech" not in lead.get(PAGE).content and b"token.create" not in file(lead)
    assert member.get(PAGE).status_code == 403 and member.get(FILE).status_code == 403


def test_the_file_has_every_row_is_itself_a_row_and_computes_nothing(desk: Client) -> None:
    audit.record(None, "evil.row", target="=HYPERLINK(1)", after={"name": "+1"})
    body = file(desk, action="evil.row").decode("utf-8-sig")
    head, row = csv.reader(io.StringIO(body))
    assert head[3:5] == ["action", "target"]
    assert row[4] == "'=HYPERLINK(1)" and row[7] == '{"name":"+1"}'
    taken = AuditEvent.objects.get(action="audit.export")
    assert (taken.actor, taken.after) == ("admin", {"query": "action=evil.row"})


def test_no_row_can_be_changed_or_deleted_even_by_the_database_account(desk: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_auditevent ENABLE TRIGGER audit_is_not_emptied")  # tests/conftest.py
    table = "accounts_auditevent"
    for verb in (f"UPDATE {table} SET actor = 'x'", f"DELETE FROM {table}", f"TRUNCATE {table}"):
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(verb)


def test_rows_outlive_their_people(desk: Client, alice: User) -> None:
    Client().get(PAGE)
    alice.memberships.all().delete()
    count = AuditEvent.objects.filter(actor="alice").count()
    assert count == 2 and told(desk, actor="alice")


def written_down() -> set[str]:
    """Every action that the portal's code names where it writes a row, by itself or through a function of its own."""
    found: set[str] = set()
    for app in ("accounts", "jobs", "metrics", "portal"):
        for path in (ROOT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in WRITERS:
                    continue
                parts = [part for argument in node.args for part in ast.walk(argument)]
                texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
                found.update(text for text in texts if re.fullmatch(r"[a-z_]+\.[a-z_]*", text))
    return found


def test_the_page_offers_every_action_that_is_ever_written() -> None:
    told = written_down()
    assert len(told) > 25
    # of f"membership.{verb}" the noun is all that can be read
    missing = {one for one in told if one not in trail.ACTIONS and one.removesuffix(".") not in trail.VERBS}
    assert not missing


def test_the_page_asks_for_no_more_with_a_longer_trail(desk: Client, admin: User) -> None:
    desk.get(PAGE)
    with CaptureQueriesContext(connection) as short:
        page = desk.get(PAGE).content.decode()
    assert '<option value="job.submit">' in page and '<option value="site_role.change">' in page
    for _number in range(120):
        audit.record(admin, "job.hold", target="aaaaaaaaaa")
    with CaptureQueriesContext(connection) as long:
        desk.get(PAGE)
    assert len(long) == len(short)
    assert not [one["sql"] for one in long if "DISTINCT" in one["sql"] and "auditevent" in one["sql"]]
