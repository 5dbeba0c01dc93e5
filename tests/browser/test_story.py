"""The main job in a real browser: sign in, submit, watch it live, lose the connection, stop one, read why one failed."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

TICKING = """import time, trainhall
for step in range(600):
    trainhall.log({"train/loss": 1 / (step + 1), "val/accuracy": step / 600}, step=step)
    trainhall.progress(step, 600)
    print("line", step, flush=True)
    time.sleep(0.1)
"""


def fill_form(page: Page, *, name: str, script: str, command: str, **more: str) -> None:
    page.goto("/jobs/new/")
    page.select_option("select[name=namespace]", "vision")
    page.select_option("select[name=runtime]", "numpy")
    page.fill("input[name=name]", name)
    page.fill("input[name=script_name]", "train.py")
    page.fill("textarea[name=script]", script)
    page.fill("textarea[name=command]", command)
    for part in page.locator("details.card:not([data-preview], [data-yaml], [open]) > summary").all():
        part.click()
    for field, value in more.items():
        page.fill(f"[name={field}]", value)


def submit(page: Page) -> str:
    page.click("button[type=submit]:has-text('Submit')")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-z]{10}/$"))
    return page.url.rstrip("/").rsplit("/", 1)[1]


def status(page: Page, word: str, *, seconds: float = 30) -> None:
    expect(page.locator("[data-job] .pill").first).to_have_text(re.compile(word), timeout=seconds * 1000)


def last_step(page: Page) -> int:
    texts = page.locator("[data-log] .line .x").all_inner_texts()
    return int(texts[-1].split()[1]) if texts else -1


def test_the_sample_runs_from_one_button_and_is_watched_live(visit: Any) -> None:
    # dave, who submits nothing in any other story: the button is for who has no job yet
    dave = visit(viewport={"width": 1280, "height": 900})
    page = dave.sign_in("dave")
    dave.picture("home-first-use")
    page.click("button:has-text('Run this sample job')")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-z]{10}/$"))
    status(page, "running")
    expect(page.locator("[data-live]").first).to_contain_text("live, as of", timeout=8000)
    loss = page.locator('[data-chart][data-key="train/loss"]')
    expect(loss.locator(".plot svg.main-svg").first).to_be_visible(timeout=20_000)
    first = loss.locator(".val").inner_text()
    expect(loss.locator(".val")).not_to_have_text(first, timeout=10_000)
    drawn = "() => document.querySelector('[data-chart][data-key=\"train/loss\"] .plot').calcdata[0].at(-1).x"
    before = page.evaluate(drawn)
    page.wait_for_function(f"() => ({drawn})() > {before} + 30", timeout=10_000)
    expect(page.locator("[data-log] .line").first).to_be_visible(timeout=10_000)
    page.wait_for_function("() => /^\\d+ % /.test(document.title)", timeout=20_000)
    dave.picture("job-running")
    status(page, "succeeded", seconds=120)
    expect(page.locator("h1")).to_have_text("digits")
    last = page.evaluate(drawn)
    job = page.url.rstrip("/").rsplit("/", 1)[1]
    answer = page.request.get(f"/api/v1/jobs/{job}/series/?key=train/loss&buckets=1")
    stored = answer.json()["series"][0]["step"][-1]
    assert last == stored, "the line ends at the last point there is"
    dave.picture("job-succeeded")


def test_a_form_says_whether_it_starts_keeps_what_was_typed_and_shows_the_manifest(visit: Any) -> None:
    page = visit().sign_in("bob")
    fill_form(page, name="typed", script="print(1)", command="python train.py", gpus="9")
    expect(page.locator("[data-forecast-result]")).to_contain_text("the largest node has 8", timeout=5000)
    page.click("button[type=submit]:has-text('Submit')")
    expect(page.locator("body")).to_contain_text("the largest node has 8")
    assert page.input_value("textarea[name=script]").strip() == "print(1)"
    assert page.input_value("input[name=name]") == "typed"
    page.fill("input[name=gpus]", "2")
    expect(page.locator("[data-forecast-result]")).to_contain_text("Fits now", timeout=5000)
    page.click("details[data-preview] summary")
    expect(page.locator("[data-preview-result]")).to_contain_text("kind: Job", timeout=5000)
    expect(page.locator("[data-preview-result]")).to_contain_text("nvidia.com/gpu")
    submit(page)
    status(page, "succeeded")


def test_a_reload_loses_nothing_but_secrets(visit: Any) -> None:
    page = visit().sign_in("carol")
    fill_form(page, name="draft", script="print('draft')", command="python train.py", tags="one, two")
    page.wait_for_timeout(700)
    page.reload()
    assert page.input_value("input[name=name]") == "draft"
    assert page.input_value("textarea[name=script]").strip() == "print('draft')"
    assert page.input_value("input[name=tags]") == "one, two"


def test_a_reload_while_the_draft_is_on_its_way_loses_nothing(visit: Any) -> None:
    """The answer comes after the reload has begun: the page that is on its way has the address without the draft."""
    page = visit().sign_in("carol")
    fill_form(page, name="overtaken", script="print('draft')", command="python train.py")
    drafts: list[Any] = []
    page.route("**/api/v1/drafts/", lambda route: drafts.append(route))

    def slow(route: Any) -> None:
        if drafts:
            drafts.pop().continue_()
            time.sleep(1)
        route.continue_()

    page.route("**/jobs/new/", slow)
    page.fill("input[name=tags]", "one, two")
    page.wait_for_timeout(1500)
    assert len(drafts) == 1
    page.reload()
    assert page.input_value("input[name=name]") == "overtaken"
    assert page.input_value("input[name=tags]") == "one, two"
    page.unroute_all()
    expect(page.locator("[data-draft-said]")).to_contain_text("Draft saved", timeout=5000)
    page.goto("/jobs/new/")
    assert page.locator("[data-draft] a", has_text="overtaken").count() == 1
    assert page.input_value("input[name=name]") == ""


def test_a_lost_connection_says_so_and_brings_everything_back_once(visit: Any) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    fill_form(page, name="ticking", script=TICKING, command="python train.py")
    job = submit(page)
    status(page, "running")
    page.goto(f"/jobs/{job}/logs/")
    expect(page.locator("[data-log] .line").nth(5)).to_be_visible(timeout=15_000)
    alice.context.set_offline(True)
    began = time.monotonic()
    expect(page.locator("[data-live]").first).to_contain_text("reconnecting", timeout=10_000)
    assert time.monotonic() - began < 7.5  # the promise is 5 s; the rest is what the test itself takes
    alice.picture("logs-reconnecting")
    page.wait_for_timeout(3000)
    before = last_step(page)
    alice.context.set_offline(False)
    expect(page.locator("[data-live]").first).to_contain_text("live, as of", timeout=20_000)
    page.wait_for_function(
        f"() => document.querySelectorAll('[data-log] .line').length > {before + 20}", timeout=20_000
    )
    steps = [
        int(text.split()[1])
        for text in page.locator("[data-log] .line .x").all_inner_texts()
        if text.startswith("line")
    ]
    assert steps == list(range(steps[0], steps[0] + len(steps))), "nothing missing, nothing twice"
    assert steps[0] == 0

    page.goto(f"/jobs/{job}/")
    page.click("button:has-text('Stop')")
    alice.picture("job-confirm-stop")
    page.click("dialog[open] [data-confirm-yes]")
    expect(page.locator("[data-bind=stop-deadline]").first).to_contain_text("stopping", timeout=5000)
    status(page, "cancelled")
    expect(page.locator("body")).to_contain_text("Stopped by alice")


def test_a_failed_job_shows_its_exit_its_reason_and_its_last_lines(visit: Any) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    fill_form(page, name="fails", script="raise ValueError('no such column: label')", command="python train.py")
    submit(page)
    status(page, "failed")
    expect(page.locator("main")).to_contain_text("exit code 1")
    expect(page.locator("main")).to_contain_text("no such column: label")
    page.wait_for_timeout(500)
    alice.picture("job-failed")


def test_the_list_follows_without_a_reload(visit: Any, portal: Any) -> None:
    watcher = visit()
    page = watcher.sign_in("bob")
    page.goto("/jobs/?namespace=vision")
    expect(page.locator("[data-live]").first).to_contain_text("live", timeout=8000)
    job = portal.submit("sleep 2")
    fresh = page.locator("[data-fresh-button]:visible")
    row = page.locator(f'[data-row="{job}"]')  # at once where the list was empty
    expect(fresh.or_(row).first).to_be_visible(timeout=5000)
    if not row.count():
        fresh.click()
    expect(row.locator(".pill")).to_have_text(re.compile("running|succeeded"), timeout=10_000)
    expect(row.locator(".pill")).to_have_text(re.compile("succeeded"), timeout=15_000)
    watcher.picture("list")


def test_dave_sees_nothing_of_it(visit: Any, portal: Any) -> None:
    job = portal.submit("true")
    page = visit().sign_in("dave")
    answer = page.goto(f"/jobs/{job}/")
    assert answer.status == 404
    page.goto("/jobs/")
    expect(page.locator(f'[data-row="{job}"]')).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/jobs/", "/jobs/new/", "/me/tokens/", "/me/namespaces/", "/status/"])
def test_no_page_scrolls_sideways_on_a_phone(visit: Any, scheme: str, path: str) -> None:
    phone = visit(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = phone.sign_in("alice")
    page.goto(path)
    page.wait_for_timeout(600)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    phone.picture(f"phone-{scheme}-{path.strip('/').replace('/', '-') or 'home'}")
