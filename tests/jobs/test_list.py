"""The list of jobs: filters, order and columns live in the address; what it costs does not grow with what it shows."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from jobs.models import Job
from tests.factories import make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(world: None, alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def shown(answer: Any) -> list[str]:
    return re.findall(r'<a class="title"[^>]*>([^<]+)</a>', answer.content.decode())


def names(client: Client, query: str) -> list[str]:
    answer = client.get(f"/jobs/?{query}")
    assert answer.status_code == 200
    return shown(answer)


def test_every_filter_is_in_the_address(browser: Client, alice: User, bob: User, vision: Any) -> None:
    old = timezone.now() - timedelta(days=9)
    make_job(alice, vision, name="big", status="running", started_at=timezone.now())
    Job.objects.filter(name="big").update(gpus=8, gpu_type="A100")
    make_job(bob, vision, name="old", status="failed", created_at=old, tags=["mnist"])
    make_job(bob, vision, name="waits", status="queued")
    assert names(browser, "status=running") == ["big"]
    assert names(browser, "status=running,failed") == ["big", "old"]
    assert names(browser, "status=running&status=queued") == ["waits", "big"]
    assert names(browser, "user=me") == ["big"]
    assert names(browser, "user=bob&since=7d") == ["waits"]
    assert names(browser, f"until={old.date().isoformat()}") == ["old"]
    assert names(browser, f"since={old.date().isoformat()}&until={old.date().isoformat()}") == ["old"]
    assert names(browser, "gpu=A100") == names(browser, "gpu=any") == ["big"]
    assert names(browser, "gpu=none") == ["waits", "old"]
    assert names(browser, "tag=mnist") == ["old"]
    assert names(browser, "priority=normal&namespace=vision") == ["waits", "big", "old"]
    assert names(browser, "priority=high") == []


def test_a_search_finds_name_id_user_and_tag_also_in_full_width(browser: Client, alice: User, vision: Any) -> None:
    job = make_job(alice, vision, name="resnet50", tags=["sweep7"])
    for words in ("resnet", "RESNET50", job.pk[:6], "alice", "sweep7", "ｒｅｓｎｅｔ５０", "res alice"):
        assert names(browser, f"q={words}") == ["resnet50"], words
    assert names(browser, "q=resnet+bob") == []


def test_a_wrong_filter_is_named_and_shows_the_whole_list(browser: Client, alice: User, vision: Any) -> None:
    make_job(alice, vision, name="here")
    answer = browser.get("/jobs/?status=runing&since=soon")
    page = answer.content.decode()
    assert "status: must be of" in page
    assert "not &#x27;soon&#x27;" in page
    assert '<option value="soon" selected>soon</option>' in page
    assert shown(answer) == ["here"]


def test_beside_a_wrong_filter_the_right_ones_hold(browser: Client, alice: User, bob: User, vision: Any) -> None:
    make_job(alice, vision, name="a", status="running", started_at=timezone.now())
    make_job(bob, vision, name="b", status="running", started_at=timezone.now())
    make_job(bob, vision, name="c", status="queued")
    answer = browser.get("/jobs/?status=running,runing&user=bob&sort=nope&cols=name,nope&until=never")
    assert shown(answer) == ["b"]
    page = answer.content.decode()
    for word in ("status", "sort", "cols", "until"):
        assert re.search(rf"<p class=\"wrap\">{word}: must be", page), word
    assert 'data-topic="jobs?status=running&amp;user=bob"' in page


@pytest.mark.parametrize("name", ["nope", "speech"])
def test_a_namespace_that_one_may_not_see_is_said_to_be_none(
    browser: Client, alice: User, dave: User, vision: Any, speech: Any, name: str
) -> None:
    make_job(dave, speech, name="secret")
    page = browser.get(f"/jobs/?namespace={name}").content.decode()
    assert f"No namespace {name} that you may see." in page
    assert "Jobs in" not in page
    assert "secret" not in page
    assert "Nothing matches" in page


def test_with_a_filter_set_an_empty_list_is_no_first_visit(browser: Client) -> None:
    page = browser.get("/jobs/?status=failed").content.decode()
    assert "Run this sample job" not in page
    assert "Nothing matches" in page
    assert "Clear filters" in page


def test_nothing_found_offers_close_names_and_the_way_back(browser: Client, alice: User, vision: Any) -> None:
    make_job(alice, vision, name="resnet-b")
    page = browser.get("/jobs/?q=resnett-b&status=queued").content.decode()
    assert "Nothing matches" in page
    assert 'href="?q=resnet-b&amp;status=queued">resnet-b</a>' in page
    assert "Clear filters" in page


def test_names_of_strangers_are_no_close_names(
    browser: Client, dave: User, speech: Any, vision: Any, alice: User
) -> None:
    make_job(dave, speech, name="secret-model")
    make_job(alice, vision, name="mine")
    page = browser.get("/jobs/?q=secret-modell").content.decode()
    assert "secret-model<" not in page


def test_the_first_visit_shows_the_exact_commands(browser: Client) -> None:
    page = browser.get("/jobs/").content.decode()
    assert "Run this sample job" in page
    assert "trainhall submit --namespace" in page


def test_rows_come_in_the_order_asked_for(browser: Client, alice: User, vision: Any) -> None:
    now = timezone.now()
    make_job(
        alice, vision, name="b waits long", queued_at=now - timedelta(hours=2), created_at=now - timedelta(hours=2)
    )
    make_job(alice, vision, name="C runs", status="running", started_at=now - timedelta(hours=5))
    make_job(alice, vision, name="a waits", queued_at=now)
    make_job(alice, vision, name="d ended", status="failed", finished_at=now)
    assert names(browser, "sort=waiting")[:2] == ["b waits long", "a waits"]
    assert names(browser, "sort=running")[0] == "C runs"
    assert names(browser, "sort=ended")[0] == "d ended"
    assert names(browser, "sort=name") == ["a waits", "b waits long", "C runs", "d ended"]
    assert names(browser, "sort=oldest")[0] == "b waits long"
    assert names(browser, "sort=nonsense") == names(browser, "")


def test_columns_are_chosen_ordered_and_hidden_in_the_address(browser: Client, alice: User, vision: Any) -> None:
    job = make_job(alice, vision, name="x", tags=["mnist"])
    page = browser.get("/jobs/?cols=tags,id,name&density=compact").content.decode()
    heads = re.findall(r'<th scope="col" data-column="(\w+)" class="of-', page)
    assert heads == ["status", "tags", "id", "name"]
    assert f'data-bind="id">{job.pk}<' in page
    assert 'class="jobs compact"' in page
    assert "<script>x" not in browser.get("/jobs/?cols=<script>x").content.decode()


def test_a_running_job_without_progress_says_how_long_it_runs(browser: Client, alice: User, vision: Any) -> None:
    make_job(alice, vision, status="running", started_at=timezone.now() - timedelta(minutes=4, seconds=2))
    assert "runs 4 m 2 s, no progress reported" in browser.get("/jobs/").content.decode().replace("4 m 3 s", "4 m 2 s")


def test_a_row_whose_reports_have_stopped_says_so_and_estimates_nothing(
    browser: Client, alice: User, vision: Any
) -> None:
    job = make_job(alice, vision, status="running", started_at=timezone.now() - timedelta(hours=1))
    told = {
        "step": 20,
        "total": 100,
        "at": time.time() - 600,
        "gap": 2.0,
        "from_step": 0,
        "from_at": time.time() - 3600,
    }
    job.feed.__class__.objects.filter(pk=job.pk).update(progress=told)
    page = browser.get("/jobs/").content.decode()
    assert "no report for 10 m" in page
    assert "ETA" not in page


def test_a_row_tells_its_metric_its_gpus_and_its_time(browser: Client, alice: User, vision: Any) -> None:
    now = timezone.now()
    job = make_job(alice, vision, status="succeeded", started_at=now - timedelta(minutes=90), finished_at=now)
    Job.objects.filter(pk=job.pk).update(gpus=8, gpu_type="H100", workers=2)
    job.feed.headline = {"lr": 0.1, "train/loss": 0.25}
    job.feed.progress = {"step": 9, "total": 10, "at": time.time()}
    job.feed.save()
    page = browser.get("/jobs/").content.decode()
    assert 'data-bind="metric-key">train/loss<' in page
    assert 'data-bind="metric-value">0.25<' in page
    assert "16xH100 (2w)" in page
    assert "ran 1 h 30 m" in page


def test_the_topic_of_live_changes_is_the_filter_alone(browser: Client, alice: User, vision: Any) -> None:
    make_job(alice, vision)
    page = browser.get("/jobs/?user=me&status=queued&cols=name&sort=name&density=compact&page=1").content.decode()
    assert 'data-topic="jobs?status=queued&amp;user=alice"' in page


def test_the_numbers_of_the_chips_come_alone_where_only_they_are_asked_for(
    browser: Client, alice: User, vision: Any
) -> None:
    make_job(alice, vision, name="a", status="failed")
    make_job(alice, vision, name="b", status="queued")
    page = browser.get("/jobs/?status=queued&page=1&part=counts").content.decode()
    assert "<tr" not in page and "<html" not in page
    assert re.search(r'data-refresh="count">1 job<', page)
    assert re.findall(r"</span>(\w+ \d+)</a>", page) == ["queued 1", "failed 1"]
    assert "part=" not in page


def test_the_page_knows_whose_jobs_one_may_change(alice: User, carol: User, admin: User, vision: Any) -> None:
    make_job(alice, vision)
    found = {}
    for person in (alice, carol, admin):
        client = Client()
        client.force_login(person)
        page = client.get("/jobs/?namespace=vision").content.decode()
        assert 'data-user="alice" data-namespace="vision"' in page
        found[person.username] = [
            "vision" in names.split() for names in re.findall(r'data-(?:own|any)="([^"]*)"', page)
        ]
    assert found == {"alice": [True, False], "carol": [True, True], admin.username: [True, True]}


@pytest.mark.parametrize("query", ["", "q=job&sort=name&cols=name,tags,metric", "sort=position", "archived=1"])
def test_the_list_costs_the_same_queries_whatever_it_shows(
    browser: Client, alice: User, vision: Any, query: str
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert browser.get(f"/jobs/?{query}").status_code == 200
        return len(seen)

    make_job(alice, vision, name="job 0")
    one = queries()
    for number in range(1, 60):
        running = {"status": "running", "started_at": timezone.now(), "held_by": alice} if number % 2 else {}
        job = make_job(alice, vision, name=f"job {number}", **running)
        job.feed.headline = {"loss": number}
        job.feed.save()
    assert queries() == one <= 15
    Job.objects.update(status="succeeded", finished_at=timezone.now())
    assert queries() <= 13 + 2 * (query == "sort=position"), "nobody waits, so no place is asked for"


def test_a_page_deep_in_the_list_and_one_beyond_its_end(browser: Client, alice: User, vision: Any) -> None:
    for number in range(51):
        make_job(alice, vision, name=f"job {number:02}")
    assert names(browser, "page=2") == ["job 00"]
    assert names(browser, "page=9999999999999999999999") == ["job 00"]
    page = browser.get("/jobs/?user=me&page=2").content.decode()
    assert 'rel="prev" href="?user=me&amp;page=1"' in page
