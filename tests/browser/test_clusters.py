"""A cluster that is not seen greys its own jobs and says since when; the others are as ever (C24, D23)."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_list import live, row, submit

pytestmark = pytest.mark.browser

FAR = """
from datetime import timedelta
from django.utils import timezone
from jobs.models import Cluster, Job
seen = timezone.now() - timedelta(seconds={age})
Cluster.objects.update_or_create(name="far", defaults={{"kind": "kubernetes", "seen_at": seen}})
Job.objects.filter(pk__in={jobs!r}).update(cluster="far")
"""


def far(portal: Any, jobs: list[str], *, age: int) -> None:
    done = portal.manage("shell", "-c", FAR.format(age=age, jobs=jobs))
    assert done.returncode == 0, done.stderr


def test_losing_one_cluster_greys_only_its_jobs(visit: Any, portal: Any) -> None:
    here, there = submit(portal, "seen-here"), submit(portal, "seen-there")
    over = submit(portal, "seen-over", "true")
    for job, status in ((here, "running"), (there, "running"), (over, "succeeded")):
        portal.wait_for(job, status)
    far(portal, [there, over], age=95)
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/jobs/?q=seen-")
    live(page)
    banner = page.locator("[data-cluster-banner]")
    expect(banner).to_contain_text("far has not been seen for 1 m")
    expect(banner).not_to_contain_text("local")
    expect(row(page, there)).to_have_attribute("data-unseen", "")
    for other in (here, over):
        expect(row(page, other)).not_to_have_attribute("data-unseen", "")
    assert portal.rest(f"jobs/{there}/")["status"] == "running", "its state is as it was"
    alice.picture("cluster-unseen-list")
    page.emulate_media(color_scheme="dark")
    alice.picture("cluster-unseen-list-dark")
    page.goto(f"/jobs/{there}/")
    expect(page.locator("[data-unseen] h1")).to_have_text("seen-there")
    page.set_viewport_size({"width": 360, "height": 740})
    alice.picture("cluster-unseen-job-phone")
    page.goto(f"/jobs/{here}/")
    live(page)
    expect(page.locator("[data-cluster-banner]")).to_be_visible()
    expect(page.locator("[data-unseen]")).to_have_count(0)
    page.goto("/")
    expect(page.locator(f'[data-row="{there}"][data-unseen]').first).to_be_visible()
    alice.picture("cluster-unseen-home")
    far(portal, [], age=0)
    page.reload()
    expect(page.locator("[data-live]").first).to_contain_text("live", timeout=10_000)
    expect(page.locator("[data-unseen]")).to_have_count(0)
