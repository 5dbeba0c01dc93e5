"""The log viewer in a real browser, its stories named after the rows of its acceptance list (UX-C)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.portal.running import CHECKOUT

pytestmark = pytest.mark.browser

PRINTS = r"""python3 - <<'END'
import sys, time
out = sys.stdout
out.write("\x1b[1;32mstart\x1b[0m of \x1b[38;5;208mthe run\x1b[0m \x1b[38;2;40;90;250mtrue colour\x1b[0m ")
out.write("\x1b[41;97m on red \x1b[0m\x1b[2K\x1b]0;title\x07\n")
for step in range(50000):
    if step % 4000 == 0:  # a cluster takes 5,000 lines a second
        out.flush()
        time.sleep(1.05)
    if step == 1234:
        out.write("WARNING: grad norm 34.1\n")
    if step % 10000 == 5000:
        out.write(f"needle <b>{step}</b> [x] \x1b[31mNee\x1b[0mdle\n")
    out.write(f"epoch {step // 1000} step {step} loss=0.{step:05}\n")
for done in range(20):
    out.write(f"\r{done:3}/20 [{'#' * done:20}] 12.5it/s")
    out.flush()
    time.sleep(0.25)
out.write("\r 20/20 [####################] done\n")
out.flush()
raise ValueError("no such column: label")
END"""
TICKS = "python3 -c \"import time\nfor n in range({count}):\n print('tick', n, flush=True)\n time.sleep({pause})\""
# lines as the watcher stores them, only faster than a cluster lets a program write
STORE = """
import time
from jobs.logs import lines as logs
from jobs.cluster.port import RawLine
from jobs.models import Worker
worker = Worker.objects.get(attempt__job_id="{job}")
def store(texts, pause=0.0):
    made = [RawLine(number, 1_760_000_000 + number / 100, text, over)
            for number, (text, over) in enumerate(texts, worker.log_number + 1)]
    for start in range(0, len(made), 1000):
        logs.store_lines(worker.attempt, worker, made[start:start + 1000])
        time.sleep(pause)
"""
BOX = "document.querySelector('[data-log=full]')"
LINES = "[...document.querySelectorAll('[data-log=full] .line')]"


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """A machine that runs other things as well is slow to draw: what is expected is bounded, not timed."""
    expect.set_options(timeout=20_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture(scope="module")
def long_job(portal: Any) -> str:
    job = str(portal.submit(PRINTS))
    portal.wait_for(job, "failed", seconds=90)
    return job


def store(portal: Any, job: str, code: str) -> None:
    done = portal.manage("shell", "-c", STORE.format(job=job) + code)
    assert done.returncode == 0, done.stderr


def box(page: Page) -> Locator:
    return page.locator("[data-log=full]")


def open_log(visit: Any, job: str, query: str = "", *, name: str = "alice", **options: Any) -> Any:
    one = visit(**options)
    page = one.sign_in(name)
    page.goto(f"/jobs/{job}/logs/{query}")
    page.wait_for_selector("[data-log-page][data-started]")
    return one


def texts(page: Page) -> list[str]:
    return list(page.locator("[data-log=full] .line .x").all_text_contents())


def seqs(page: Page) -> list[int]:
    return list(page.evaluate(f"() => {LINES}.map((line) => Number(line.dataset.seq))"))


def in_sight(line: Locator) -> None:
    expect(line).to_be_in_viewport(timeout=20_000)


def found(page: Page, words: str | re.Pattern[str]) -> None:
    expect(page.locator("[data-log-found]")).to_have_text(words, timeout=20_000)


def at_end(page: Page) -> bool:
    return bool(page.evaluate(f"() => {BOX}.scrollHeight - {BOX}.scrollTop - {BOX}.clientHeight < 30"))


def test_c1_opens_with_the_last_lines_and_scrolls_back_to_the_first(visit: Any, long_job: str) -> None:
    page = open_log(visit, long_job).page
    assert "ValueError: no such column: label" in texts(page)[-1]
    assert at_end(page)
    expect(page.locator("[data-log-total]")).to_contain_text("50,0")
    before = seqs(page)
    top = f"{LINES}.find((line) => Number(line.dataset.seq) === {before[0]}).getBoundingClientRect().top"
    was = page.evaluate(f"() => {{ {BOX}.scrollTop = 0; return {top}; }}")
    page.wait_for_function(f"() => Number({LINES}[0].dataset.seq) < {before[0]}")
    assert abs(page.evaluate(f"() => {top}") - was) < 3, "what was read stays where it was"
    box(page).focus()
    page.keyboard.press("Home")
    page.wait_for_function(f"() => {LINES}[0].dataset.seq === '1'")
    in_sight(page.locator(".line[data-seq='1']"))
    for _ in range(12):  # down through more than a window of lines
        page.evaluate(f"() => {{ {BOX}.scrollTop = {BOX}.scrollHeight; }}")
        page.wait_for_timeout(250)
    shown = seqs(page)
    assert len(shown) <= 4000
    assert shown[-1] > 5000
    assert shown == list(range(shown[0], shown[0] + len(shown))), "nothing missing, nothing twice"
    box(page).focus()
    page.keyboard.press("End")
    expect(page.locator(".line .x").last).to_contain_text("no such column")
    expect(page.locator("[data-log-follow]")).to_be_checked()


def test_c3_a_progress_bar_is_one_line_whose_states_can_be_opened(visit: Any, long_job: str) -> None:
    one = open_log(visit, long_job)
    page = one.page
    bar = page.locator(".line", has_text="20/20")
    expect(bar).to_have_count(1)
    updates = re.fullmatch(r"(\d+) updates collapsed", bar.locator(".updates").inner_text())
    assert updates
    expect(page.locator(".line", has_text="19/20")).to_have_count(0)
    bar.locator(".updates").click()
    history = page.locator(".line-history")
    expect(history.locator(".update")).to_have_count(int(updates[1]))
    expect(history.locator(".update").last).to_contain_text(re.compile("1[5-9]/20"))
    one.picture("logs-bar-open")
    bar.locator(".updates").click()
    expect(history).to_have_count(0)


def test_c4_colours_are_classes_and_nothing_is_markup(visit: Any, long_job: str) -> None:
    one = open_log(visit, long_job, "#L1", color_scheme="dark")
    page = one.page
    first = page.locator(".line[data-seq='1'] .x")
    in_sight(first)
    assert first.inner_text().strip() == "start of the run true colour  on red"
    expect(first.locator(".ansi-green.ansi-bold")).to_have_text("start")
    expect(first.locator(".ansi-yellow")).to_have_text("the run")
    expect(first.locator(".ansi-blue")).to_have_text("true colour")
    expect(first.locator(".ansi-on-red")).to_have_text(" on red ")
    one.picture("logs-colours-dark")
    page.goto(f"/jobs/{long_job}/logs/?q=needle")
    expect(page.locator(".line.at .x")).to_contain_text("<b>5000</b>")
    assert page.locator(".line .x b").count() == 0


def test_c5_search_counts_goes_round_and_shows_only_hits(visit: Any, long_job: str) -> None:
    one = open_log(visit, long_job, viewport={"width": 1280, "height": 900})
    page = one.page
    box(page).focus()
    page.keyboard.press("Control+f")
    expect(page.locator("[data-log-q]")).to_be_focused()
    page.keyboard.type("needle <b>")
    page.keyboard.press("Enter")
    found(page, "1 of 5")
    expect(page.locator(".line.at .x")).to_contain_text("needle <b>5000</b>")
    in_sight(page.locator(".line.at"))
    expect(page.locator(".line.at mark").first).to_have_text("needle <b>")
    one.picture("logs-search")
    page.keyboard.press("Enter")
    found(page, "2 of 5")
    page.keyboard.press("Shift+Enter")
    found(page, "1 of 5")
    page.keyboard.press("Shift+Enter")
    found(page, "5 of 5, from the end again")
    box(page).focus()
    page.keyboard.press("N")
    found(page, "4 of 5")
    page.keyboard.press("n")
    page.keyboard.press("n")
    found(page, re.compile("1 of 5|5 of 5"))
    assert "q=needle" in page.url
    page.get_by_role("button", name="Show only the lines that match").or_(page.get_by_text("only hits")).first.click()
    page.wait_for_function(f"() => {LINES}.length === 5")
    assert all("needle" in text for text in texts(page))
    expect(page.locator("[data-log-earlier]")).to_be_hidden()
    one.picture("logs-only-hits")
    page.reload()
    page.wait_for_function(f"() => {LINES}.length === 5")
    page.get_by_text("only hits").click()
    page.wait_for_function(f"() => {LINES}.length > 500")


def test_c5_patterns_cases_and_what_is_wrong_with_one(visit: Any, long_job: str) -> None:
    one = open_log(visit, long_job)
    page = one.page
    field = page.locator("[data-log-q]")
    field.fill(r"step (7|8)00 ")
    found(page, "2 hits")
    field.fill("NEEDLE")
    found(page, "5 hits")
    page.get_by_role("button", name="Match case").click()
    found(page, "No line matches")
    assert "case=1" in page.url
    page.get_by_role("button", name="Match case").click()
    field.fill("step (7")
    expect(page.locator("[data-log-error]")).to_contain_text("no regular expression of RE2")
    expect(field).to_have_attribute("aria-invalid", "true")
    one.picture("logs-bad-pattern")
    page.get_by_role("button", name="Regular expression").click()
    found(page, "No line matches")
    field.fill("[x]")
    found(page, "5 hits")
    field.press("Escape")
    expect(page.locator("[data-log-found]")).to_have_text("")
    assert "q=" not in page.url


def test_c6_follow_stops_for_the_reader_and_end_resumes(visit: Any, portal: Any) -> None:
    job = portal.submit(TICKS.format(count=1200, pause=0.02))
    portal.wait_for(job, "running")
    one = open_log(visit, job, name="bob")
    page = one.page
    page.wait_for_function(f"() => {LINES}.length > 150", timeout=20_000)
    assert at_end(page)
    expect(page.locator("[data-log-follow]")).to_be_checked()
    box(page).hover()
    page.mouse.wheel(0, -600)
    expect(page.locator("[data-log-follow]")).not_to_be_checked()
    seen = page.evaluate(f"() => {BOX}.scrollTop")
    expect(page.locator("[data-log-pill]")).to_have_text(re.compile(r"↓ [\d,]+ new lines"), timeout=20_000)
    one.picture("logs-pill")
    assert page.evaluate(f"() => {BOX}.scrollTop") == seen, "it does not fight the reader"
    box(page).focus()
    page.keyboard.press("End")
    expect(page.locator("[data-log-follow]")).to_be_checked()
    expect(page.locator("[data-log-pill]")).to_be_hidden()
    last = seqs(page)[-1]
    page.wait_for_function(f"() => Number({LINES}.at(-1).dataset.seq) > {last}")
    assert at_end(page)
    page.keyboard.press("f")
    expect(page.locator("[data-log-follow]")).not_to_be_checked()
    portal.rest(f"jobs/{job}/cancel/", {})


def test_c7_all_workers_and_all_attempts_or_one_of_each(visit: Any, portal: Any) -> None:
    command = "echo try $TRAINHALL_ATTEMPT of $RANK; exec sleep 60"
    document = {
        "namespace": "vision",
        "runtime": "shell",
        "command": command,
        "stop_grace": "1s",
        "resources": {"workers": 2},
    }
    job = str(portal.rest("jobs/", document)["id"])
    portal.wait_for(job, "running")
    one = open_log(visit, job, viewport={"width": 1280, "height": 900})
    page = one.page
    expect(page.locator(".line")).to_have_count(2)
    portal.rest(f"jobs/{job}/hold/", {})
    portal.wait_for(job, "queued")
    portal.rest(f"jobs/{job}/release/", {})
    expect(page.locator(".line")).to_have_count(4, timeout=30_000)
    expect(page.locator(".boundary")).to_have_text(["Attempt 2 starts here"])
    one.picture("logs-attempts")
    page.reload()
    expect(page.locator(".boundary")).to_have_text(["Attempt 2 starts here"])
    page.get_by_label("Attempt").select_option("2")
    page.wait_for_url("**attempt=2")
    expect(page.locator(".line")).to_have_count(2)
    page.get_by_label("Worker").select_option("worker-1")
    page.wait_for_url("**worker=worker-1&attempt=2")
    expect(page.locator(".line")).to_have_count(1)
    expect(page.locator(".line .w").first).to_be_hidden()
    portal.rest(f"jobs/{job}/cancel/", {})


def test_c8_links_to_lines_wrap_times_copies_and_downloads(visit: Any, long_job: str) -> None:
    one = open_log(visit, long_job, "#L18321", viewport={"width": 1280, "height": 900})
    page = one.page
    marked = page.locator(".line.marked")
    expect(marked).to_have_count(1)
    expect(marked).to_have_attribute("data-seq", "18321")
    in_sight(marked)
    one.picture("logs-link")
    page.locator(".line[data-seq='18325'] a.n").click()
    page.locator(".line[data-seq='18322'] a.n").click(modifiers=["Shift"])
    expect(marked).to_have_count(4)
    assert page.url.endswith("#L18322-L18325")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link to line").click()
    expect(page.locator(".toast")).to_contain_text("Copied")
    link = page.evaluate("() => navigator.clipboard.readText()")
    assert link.endswith(f"/jobs/{long_job}/logs/#L18322-L18325")
    page.goto("/jobs/")
    page.goto(link)
    expect(marked).to_have_count(4)
    in_sight(marked.first)
    field = page.get_by_label("Line")
    field.fill("40,000-40,001")
    field.press("Enter")
    expect(page.locator(".line.marked")).to_have_count(2)
    in_sight(page.locator(".line[data-seq='40000']"))
    page.get_by_label("times").uncheck()
    page.get_by_label("wrap").check()
    expect(page.locator(".line .t").first).to_be_hidden()
    assert re.search(r"wrap=1&ts=0#L40000-L40001$", page.url)
    box(page).focus()
    page.evaluate(
        "() => getSelection().setBaseAndExtent(document.getElementById('L40000'), 0,"
        " document.querySelector('#L40001 .x'), 1)"
    )
    page.keyboard.press("Control+c")
    copied = page.evaluate("() => navigator.clipboard.readText()").splitlines()
    assert [line.split()[0] for line in copied] == ["epoch", "epoch"], "lines, without numbers and times"
    with page.expect_download() as started:
        page.get_by_role("link", name=".log", exact=True).click()
    assert started.value.suggested_filename == f"{long_job}.log"
    assert started.value.path().read_text().count("\n") > 50_000
    with page.expect_download() as started:
        page.get_by_role("link", name=".log.gz").click()
    assert started.value.path().read_bytes()[:2] == b"\x1f\x8b"
    page.get_by_role("link", name="Raw").click()
    page.wait_for_url("**/logs/raw/**")
    assert page.evaluate("document.contentType") == "text/plain"


def test_c10_what_stands_out_is_marked_and_listed(visit: Any, long_job: str) -> None:
    one = open_log(visit, long_job, viewport={"width": 1280, "height": 900})
    page = one.page
    expect(page.locator(".line[data-level=traceback]")).to_have_count(1)
    expect(page.locator(".line[data-level=error]")).to_have_count(1)
    page.locator("[data-log-jumps] summary").press("Enter")
    items = page.locator("[data-log-jump-list] button")
    expect(items).to_have_count(2)
    expect(items.first).to_contain_text("traceback: Traceback (most recent call last)")
    one.picture("logs-jumps")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".line.at")).to_contain_text("Traceback")
    page.goto(f"/jobs/{long_job}/logs/?q=nothing-like-it#L1230")
    expect(page.locator(".line[data-level=warning]")).to_have_count(1)


def test_c9_and_c10_every_mark_is_in_the_gutter_and_in_the_list(visit: Any, portal: Any) -> None:
    job = portal.submit("echo first")
    portal.wait_for(job, "succeeded")
    said = {
        "warning": "WARNING: grad norm 34.1",
        "checkpoint": "Saved checkpoint to /ckpt/step-100.pt",
        "memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "traceback": "Traceback (most recent call last):",
        "error": "ValueError: no label",
        "dropped": "[1234 lines dropped by the rate limit]",
        "cut": f"{'x' * 65536} … [77 more bytes of this line were cut]",
    }
    store(portal, job, f"store([(text, False) for text in {list(said.values())!r}])")
    one = open_log(visit, job, viewport={"width": 1280, "height": 900})
    page = one.page
    for level in said:
        expect(page.locator(f".line[data-level={level}]")).to_have_count(1)
    page.locator("[data-log-jumps] summary").click()
    items = page.locator("[data-log-jump-list] button")
    expect(items).to_have_count(len(said))
    expect(items.nth(5)).to_contain_text("1234 lines dropped by the rate limit")
    expect(items.nth(6)).to_contain_text("cut at 64 KiB")
    one.picture("logs-marks")
    page.goto(f"/jobs/{job}/logs/?level=warning")
    expect(page.locator(".line .x")).to_have_text([said["warning"], said["dropped"]])


def test_c11_a_log_is_no_live_region_and_its_tools_have_names(visit: Any, portal: Any) -> None:
    job = portal.submit("echo first")
    portal.wait_for(job, "succeeded")
    page = open_log(visit, job).page
    expect(box(page)).to_have_attribute("aria-live", "off")
    store(portal, job, "store([('RuntimeError: boom', False)])")
    expect(page.locator("[data-log-status]")).to_have_text("Error at line 2: RuntimeError: boom")
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('[data-log-page] :is(button, input, select, a)')]"
        ".filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length"
    )
    assert nameless == 0


def test_a_hundred_thousand_live_lines_leave_the_page_small(visit: Any, portal: Any) -> None:
    job = portal.submit("echo first")
    portal.wait_for(job, "succeeded")
    page = open_log(visit, job, name="bob").page
    watch = """() => {
        const count = () => document.querySelectorAll("[data-log=full] *").length;
        window.most = 0;
        new MutationObserver(() => (window.most = Math.max(window.most, count()))).observe(
            document.querySelector("[data-log=full]"), { childList: true });
    }"""
    page.evaluate(watch)
    store(portal, job, "store(((f'flood {n}', False) for n in range(100000)), 0.04)\nstore([('the last one', False)])")
    expect(page.locator(".line", has_text="the last one")).to_have_count(1, timeout=60_000)
    assert 4000 <= page.evaluate("() => window.most") <= 4000 * 6
    assert at_end(page)


def test_a_million_lines_and_a_bar_of_thousands_of_states(visit: Any, portal: Any) -> None:
    job = portal.submit("echo first")
    portal.wait_for(job, "succeeded")
    bar = "store(((f'{n}/5000', n < 5000) for n in range(5001)))"
    body = "store((('a needle' if n == 400000 else f'line {n}', False) for n in range(995000)))"
    store(portal, job, f"{bar}\n{body}\n{bar}")
    one = open_log(visit, job, viewport={"width": 1280, "height": 900})
    page = one.page
    expect(page.locator("[data-log-total]")).to_contain_text("1,005,003 lines")
    page.wait_for_function(f"() => {LINES}.length > 50")
    assert texts(page)[-1] == "5000/5000"
    expect(page.locator(".updates")).to_have_text("5,000 updates collapsed")
    page.locator(".updates").click()
    expect(page.locator(".line-history")).to_contain_text("The latest 200 of 5,000.")
    page.fill("[data-log-q]", "needle$")
    page.keyboard.press("Enter")
    found(page, re.compile("1 of 1"))
    in_sight(page.locator(".line.at"))
    box(page).focus()
    page.keyboard.press("Home")
    expect(page.locator(".line").first).to_contain_text("first")
    expect(page.locator(".line").nth(1)).to_contain_text("5000/5000")
    expect(page.locator(".line").nth(2)).to_contain_text("line 0")
    one.picture("logs-million")


def test_e16_a_line_is_found_by_keyboard_alone(visit: Any, long_job: str) -> None:
    page = visit().sign_in("alice")
    page.goto(f"/jobs/{long_job}/")
    page.keyboard.press("l")
    page.wait_for_url("**/logs/")
    page.wait_for_function(f"() => {LINES}.length > 500")
    page.keyboard.press("/")
    page.keyboard.type("no such column")
    page.keyboard.press("Enter")
    expect(page.locator(".line.at")).to_contain_text("ValueError")
    in_sight(page.locator(".line.at"))
    page.keyboard.press("Escape")
    expect(page.locator("[data-log-q]")).to_have_value("")
    page.keyboard.press("Escape")
    expect(box(page)).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_e16_nothing_is_cut_on_a_phone(visit: Any, long_job: str, scheme: str) -> None:
    one = open_log(visit, long_job, "?q=epoch+49", viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = one.page
    found(page, re.compile(r"1 of 1,000"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    one.picture(f"logs-phone-{scheme}")
    page.locator("[data-log-jumps] summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_c5_a_count_that_failed_ends_no_search(visit: Any, portal: Any) -> None:
    job = portal.submit(TICKS.format(count=600, pause=0.5))
    portal.wait_for(job, "running")
    page = open_log(visit, job).page
    page.wait_for_function(f"() => {LINES}.length > 3")
    failed: list[str] = []

    def away(route: Any) -> None:
        failed.append(route.request.url)
        route.fulfill(status=503, body="away")

    counts = re.compile(r"/logs/\?.*count=1")
    page.fill("[data-log-q]", "tick")
    found(page, re.compile(r"\d+ hits"))
    page.route(counts, away)
    page.wait_for_timeout(6000)
    assert failed
    found(page, re.compile(r"\d+ hits"))
    before = int(page.locator("[data-log-found]").inner_text().split()[0])
    page.unroute(counts)
    page.wait_for_function(
        f"() => parseInt(document.querySelector('[data-log-found]').textContent) > {before}", timeout=20_000
    )
    # the count of a new search fails: the page says so, n stays, and the next lines mend it
    page.route(counts, away)
    page.fill("[data-log-q]", "tick 1")
    expect(page.locator("[data-log-error]")).to_contain_text("does not answer")
    box(page).focus()
    page.keyboard.press("n")
    expect(page.locator(".line.at")).to_have_text(re.compile("tick 1"))
    assert "/logs/" in page.url
    page.unroute(counts)
    found(page, re.compile(r"1 of \d+"))
    expect(page.locator("[data-log-error]")).to_be_hidden()
    portal.rest(f"jobs/{job}/cancel/", {})


def test_c5_n_is_a_key_of_the_search_while_a_pattern_is_wrong(visit: Any, long_job: str) -> None:
    page = open_log(visit, long_job).page
    page.fill("[data-log-q]", "[needle")
    expect(page.locator("[data-log-error]")).to_be_visible()
    page.evaluate("() => { window.keys = []; addEventListener('keydown', (event) => window.keys.push(event.key)); }")
    box(page).focus()
    page.keyboard.press("n")
    page.keyboard.press("Shift+N")
    page.keyboard.press("y")  # the page's own keys still come
    assert page.evaluate("window.keys.filter((key) => key !== 'Shift')") == ["y"]


def test_c3_states_that_cannot_be_had_are_told(visit: Any, long_job: str) -> None:
    page = open_log(visit, long_job).page
    page.route(re.compile(r"/logs/\?.*before="), lambda route: route.abort())
    updates = page.locator(".line", has_text="20/20").locator(".updates")
    updates.click()
    expect(page.locator(".toast")).to_contain_text("could not be loaded")
    page.unroute_all()
    updates.click()
    expect(page.locator(".line-history .update").first).to_be_visible()


SAYS = r"""python3 - <<'END'
import logging, sys, time
logging.basicConfig(level="DEBUG", format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stdout)
log = logging.getLogger("train")
for step in range(30):
    log.debug("batch %d read", step)
    log.info("step %d", step)
    print(f"epoch 0 step {step} loss=0.{step}")
    if step % 10 == 3:
        log.warning("grad norm %d.5 is clipped", step)
try:
    {}["label"]
except KeyError:
    log.exception("sample skipped")
sys.stdout.flush()
time.sleep(600)
END"""


def command_line(portal: Any, *words: str) -> list[str]:
    token = portal.manage("create_token", "alice").stdout.strip()
    home = {"TRAINHALL_URL": f"http://127.0.0.1:{portal.port}", "TRAINHALL_API_TOKEN": token}
    command = [sys.executable, "-m", "trainhall", *words]
    environment = {**os.environ, **home, "PYTHONPATH": str(CHECKOUT / "sdk")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_c7_levels_and_times_with_counts_a_search_and_live_lines(visit: Any, portal: Any) -> None:
    job = portal.submit(SAYS)
    portal.wait_for(job, "running")
    one = open_log(visit, job, viewport={"width": 1280, "height": 900}, timezone_id="Asia/Tokyo")
    page = one.page
    page.wait_for_function(f"() => {LINES}.length >= 96")
    counts = page.locator("[data-log-count]")
    expect(counts).to_have_text(["4", "3", "30", "30", "30"], timeout=20_000)
    page.get_by_label(re.compile("errors")).check()
    page.wait_for_function(f"() => {LINES}.length === 4")
    assert "level=error" in page.url
    assert texts(page)[1] == "Traceback (most recent call last):"
    expect(page.locator(".line[data-level]")).to_have_count(3)  # the message, the traceback, its exception
    one.picture("logs-level-error")
    store(portal, job, "store([('plain live', False), ('RuntimeError: live', False), ('WARNING: live', False)])")
    page.wait_for_function(f"() => {LINES}.length === 5")
    assert texts(page)[-1] == "RuntimeError: live"
    expect(counts).to_have_text(["5", "4", "30", "30", "31"], timeout=20_000)
    page.get_by_label(re.compile("warnings")).check()
    page.wait_for_function(f"() => {LINES}.length === 9")
    assert re.search(r"level=error(,|%2C)warning", page.url)
    # a search within them, and its hits of each level
    page.fill("[data-log-q]", "live|clipped")
    found(page, "5 hits")
    expect(counts).to_have_text(["1", "4", "0", "0", "1"], timeout=20_000)
    page.get_by_text("only hits").click()
    page.wait_for_function(f"() => {LINES}.length === 5")
    page.get_by_text("only hits").click()
    page.wait_for_function(f"() => {LINES}.length === 9")
    page.reload()
    page.wait_for_function(f"() => {LINES}.length === 9")
    expect(page.get_by_label(re.compile("errors"))).to_be_checked()
    with page.expect_download() as started:
        page.get_by_role("link", name=".log", exact=True).click()
    assert started.value.suggested_filename == f"{job}-error-warning.log"
    assert started.value.path().read_text().count("\n") == 9
    assert command_line(portal, "logs", job, "--level", "error", "--since", "2020-01-01") == [
        *(line for line in texts(page) if "clipped" not in line and "WARNING" not in line)
    ]
    assert command_line(portal, "logs", job, "--level", "error", "--until", "2020-01-01") == []
    page.get_by_role("button", name="All lines").click()
    page.wait_for_function(f"() => {LINES}.length >= 99")
    assert "level=" not in page.url
    portal.rest(f"jobs/{job}/cancel/", {})


def test_c7_a_stretch_of_time_in_the_readers_time_zone(visit: Any, portal: Any) -> None:
    job = portal.submit("echo first")
    portal.wait_for(job, "succeeded")
    store(
        portal, job, "store(((f'line {n}', False) for n in range(60000)))"
    )  # 100 a second since 2025-10-09 08:53:20 UTC
    one = open_log(visit, job, viewport={"width": 1280, "height": 900}, timezone_id="Asia/Tokyo")
    page = one.page
    expect(page.locator("[data-log-zone]")).to_have_text("Asia/Tokyo")
    page.get_by_text("Time", exact=True).click()
    page.locator("[data-log-time=from]").fill("2025-10-09T17:55:00")
    page.locator("[data-log-time=to]").fill("2025-10-09T17:55:10")
    page.wait_for_function(f"() => {LINES}.length > 900 && {LINES}.length <= 1000")
    assert "from=2025-10-09T08%3A55%3A00.000Z" in page.url
    expect(page.locator(".line .t").first).to_have_text("17:55:00")
    expect(page.locator(".line .t").last).to_have_text("17:55:09")
    expect(page.locator("[data-log-count=plain]")).to_have_text("1,000")
    # by a click on a time
    third = page.locator(".line .t").nth(300)
    third.scroll_into_view_if_needed()
    third.click()
    menu = page.locator("[data-log-when]")
    expect(menu).to_be_visible()
    one.picture("logs-when")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    third.click()
    text = page.locator(".line .x").nth(300).inner_text()
    menu.get_by_role("button", name="Only from here on").click()
    page.wait_for_function(f"() => {LINES}[0].querySelector('.x').textContent === '{text}'")
    colleague = open_log(visit, job, page.url.split("/logs/")[1], name="bob", timezone_id="Europe/Berlin").page
    expect(colleague.locator(".line .x").first).to_have_text(text)
    expect(colleague.locator("[data-log-time=to]")).to_have_value("2025-10-09T10:55:10")
    page.goto(f"/jobs/{job}/logs/?level=error&from=2025-10-09T08:55:00Z")
    expect(page.get_by_text("No line is of what is chosen above.").filter(visible=True)).to_be_visible()
    page.goto(f"/jobs/{job}/logs/?from=soon")
    expect(page.get_by_role("alert")).to_contain_text("from: must be a moment")
    assert len(texts(page)) > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_c7_the_filters_fit_a_phone(visit: Any, long_job: str, scheme: str) -> None:
    one = open_log(visit, long_job, "?level=error,warning", viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = one.page
    expect(page.locator("[data-log-count=error]")).not_to_have_text("", timeout=20_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    one.picture(f"logs-levels-phone-{scheme}")
