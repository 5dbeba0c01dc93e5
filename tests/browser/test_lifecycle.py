"""A job's life on pages that stay open: holds, a coming time limit, silence, retries, and a stop that everyone sees."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_story import status

pytestmark = pytest.mark.browser

IGNORES = "trap '' TERM; echo up; while :; do sleep 0.2; done"
FALLS_SILENT = """import time, trainhall
for step in range(20):
    trainhall.log({"loss": 1 / (step + 1)}, step=step)
    trainhall.progress(step, 4000)
    time.sleep(0.3)
time.sleep(600)
"""


def start(portal: Any, name: str, command: str, **more: Any) -> str:
    document = {"namespace": "vision", "runtime": "numpy", "name": name, "command": command, **more}
    return str(portal.rest("jobs/", document)["id"])


def seconds_left(page: Page) -> int:
    return int(re.findall(r"\d+", page.locator("[data-bind=stop-deadline]").inner_text())[0])


def test_a_coming_limit_silence_and_a_retry_are_told_on_open_pages(visit: Any, portal: Any) -> None:
    """C13, C14, D9."""
    limited = start(portal, "limited", "echo up; sleep 600", time_limit="60s")
    silent = start(portal, "silent", "python train.py", code={"files": {"train.py": FALLS_SILENT}})
    failing = start(portal, "fails-again", "exit 3", retries=2)
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")

    page.goto(f"/jobs/{failing}/")
    expect(page.locator(".top")).to_contain_text("of at most 3: exit code 3", timeout=30_000)
    expect(page.locator(".top")).to_contain_text("tries again at", timeout=30_000)
    alice.picture("job-tries-again")

    page.goto(f"/jobs/{limited}/")
    status(page, "running")
    expect(page.locator("[data-bind=limit]")).to_be_hidden()

    other = visit(viewport={"width": 390, "height": 800}, color_scheme="dark")
    beside = other.sign_in("carol")
    beside.goto(f"/jobs/{silent}/")
    expect(beside.locator("[data-bind=progress-text]").first).to_contain_text("done about", timeout=30_000)
    expect(beside.locator("[data-bind=progress-text]").first).to_contain_text("no report for", timeout=60_000)
    expect(beside.locator("[data-bind=progress-text]").first).not_to_contain_text("done about")
    other.picture("job-silent-phone-dark")
    beside.goto("/jobs/")
    expect(beside.locator(f"[data-row='{silent}']")).to_contain_text("no report for", timeout=10_000)

    expect(page.locator("[data-bind=limit]")).to_be_visible(timeout=70_000)
    expect(page.locator("body")).to_contain_text(re.compile("limited ends at .*: time limit"))
    alice.picture("job-near-its-limit")
    status(page, "failed", seconds=30)
    expect(page.locator("main")).to_contain_text("limit of 1 min")
    expect(page.locator("main")).to_contain_text("Files kept until")
    page.click("text=Where the time went")
    expect(page.locator("[data-refresh=phase-rows]")).to_contain_text("setting up")
    alice.picture("job-over-its-limit")
    portal.rest(f"jobs/{silent}/cancel/", {})


def test_a_stop_counts_down_on_every_open_page(visit: Any, portal: Any) -> None:
    job = start(portal, "stubborn", IGNORES, stop_grace="40s")
    alice, carol = visit(), visit(viewport={"width": 390, "height": 800})
    page, other = alice.sign_in("alice"), carol.sign_in("carol")
    page.goto(f"/jobs/{job}/")
    other.goto(f"/jobs/{job}/logs/")
    status(page, "running")
    page.click("button:has-text('Stop')")
    page.click("dialog[open] [data-confirm-yes]")
    for one in (page, other):
        expect(one.locator("[data-bind=stop-deadline]")).to_have_text(re.compile(r"stopping, \d+ s"), timeout=10_000)
        # the button of the next step is there without a reload
        expect(one.locator("button:has-text('Stop now')")).to_be_visible(timeout=5000)
    before = seconds_left(other)
    assert 0 < before <= 40
    other.wait_for_function(
        "before => Number(document.querySelector('[data-bind=stop-deadline]').textContent.match(/\\d+/)) < before",
        arg=before,
    )
    alice.picture("job-stopping")
    carol.picture("job-stopping-phone")
    other.click("button:has-text('Stop now')")
    other.click("dialog[open] [data-confirm-yes]")
    for one in (page, other):
        status(one, "cancelled", seconds=15)
        expect(one.locator("[data-bind=stop-deadline]")).to_be_hidden()


def test_hold_and_release_go_on_in_the_next_attempt_without_a_reload(visit: Any, portal: Any) -> None:
    """C12, D2."""
    job = start(portal, "held", "echo up; sleep 600")
    alice, carol = visit(viewport={"width": 1280, "height": 900}, color_scheme="dark"), visit()
    page, other = alice.sign_in("alice"), carol.sign_in("carol")
    page.goto(f"/jobs/{job}/")
    other.goto(f"/jobs/{job}/")
    status(other, "running")
    page.click("button:has-text('Hold')")
    page.click("dialog[open] [data-confirm-yes]")
    status(other, "queued")
    expect(other.locator(".top")).to_contain_text("held by alice")
    expect(other.locator(".phases")).to_contain_text("held")
    other.click("button:has-text('Release')")
    status(page, "running")
    expect(page.locator(".top")).to_contain_text("attempt 2: held")
    expect(page.locator(".top")).not_to_contain_text("held by alice")
    page.click("text=Where the time went")
    expect(page.locator("[data-refresh=phase-rows] tr")).to_have_count(10, timeout=10_000)
    alice.picture("job-attempt-2-timeline-dark")
    portal.rest(f"jobs/{job}/cancel/", {"at_once": True})
