"""The list people keep open to triage: filters in the address, live rows, one verb for many, and all of it by keyboard."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_story import TICKING

pytestmark = pytest.mark.browser


def row(page: Page, job: str) -> Any:
    return page.locator(f'[data-row="{job}"]')


def live(page: Page) -> None:
    expect(page.locator("[data-live]").first).to_contain_text("live", timeout=10_000)


def submit(portal: Any, name: str, command: str = "sleep 300", **more: Any) -> str:
    document = {"namespace": "vision", "runtime": "shell", "name": name, "command": command, **more}
    return str(portal.rest("jobs/", document)["id"])


def test_bulk_stop_asks_once_and_answers_for_each_job(visit: Any, portal: Any) -> None:  # B24, UX 2.3
    jobs = [submit(portal, f"bulk-{number}") for number in range(3)]
    over = submit(portal, "bulk-over", "true")
    portal.wait_for(over, "succeeded")
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/jobs/?q=bulk-")
    live(page)
    boxes = page.locator("tbody td.pick input")
    boxes.nth(0).click()
    boxes.nth(3).click(modifiers=["Shift"])
    expect(page.locator("[data-bulk-count]")).to_have_text("4 selected")
    alice.picture("list-selection")
    page.click("#bulk button[value=stop]")
    dialog = page.locator("#bulk-dialog")
    expect(dialog).to_contain_text("Stop 4 jobs?")
    expect(dialog).to_contain_text("1 is over already")
    expect(dialog.locator("li")).to_have_count(4)
    dialog.locator("input").fill("wrong data")
    alice.picture("list-bulk-dialog")
    dialog.locator("[data-bulk-yes]").click()
    results = page.locator("[data-bulk-results]")
    expect(results).to_contain_text("Stop: 3 done, 1 skipped, 0 refused")
    expect(results).to_contain_text("It is over already: succeeded.")
    alice.picture("list-bulk-results")
    for job in jobs:
        expect(row(page, job).locator(".pill")).to_have_text(re.compile("cancelled"), timeout=20_000)
    assert portal.rest(f"jobs/{jobs[0]}/")["reason"]["text"].startswith("Stopped by alice. wrong data")
    expect(page.locator("[data-bulk-count]")).to_have_text("0 selected")


def test_rows_stand_still_and_choice_and_focus_survive_a_refresh(visit: Any, portal: Any) -> None:  # UX-E8
    first = submit(portal, "still-1", "sleep 60")
    second = submit(portal, "still-2", "sleep 60")
    page = visit().sign_in("alice")
    page.goto("/jobs/?q=still-")
    live(page)
    row(page, first).locator("td.pick input").check()
    row(page, first).locator("a.title").focus()
    third = submit(portal, "still-3", "sleep 60")
    fresh = page.locator("[data-fresh-button]")
    expect(fresh).to_have_text("1 new · refresh order", timeout=5000)
    order = [one.get_attribute("data-row") for one in page.locator("tbody [data-row]").all()]
    assert order == [second, first], "nothing moves before one asks for it"
    fresh.click()
    expect(row(page, third)).to_be_visible()
    order = [one.get_attribute("data-row") for one in page.locator("tbody [data-row]").all()]
    assert order == [third, second, first]
    expect(row(page, first).locator("td.pick input")).to_be_checked()
    expect(page.locator('[data-refresh="count"]')).to_have_text("3 jobs")
    for job in (first, second, third):
        portal.rest(f"jobs/{job}/cancel/", {})


def test_a_row_that_no_longer_matches_is_marked_where_it_stands(visit: Any, portal: Any) -> None:
    job = submit(portal, "leaves")
    portal.wait_for(job, "running")
    page = visit().sign_in("alice")
    page.goto("/jobs/?q=leaves&status=running,queued,starting")
    live(page)
    portal.rest(f"jobs/{job}/cancel/", {})
    expect(row(page, job).locator('[data-bind="left"]')).to_have_text("no longer matches", timeout=20_000)


def test_a_running_job_says_something_before_it_reports(visit: Any, portal: Any) -> None:
    job = submit(portal, "silent")
    portal.wait_for(job, "running")
    page = visit().sign_in("alice")
    page.goto("/jobs/?q=silent")
    expect(row(page, job).locator(".why").first).to_have_text(re.compile(r"runs .*, no progress reported"))
    expect(row(page, job).locator('[data-bind="spent"]')).to_have_text(re.compile("runs"))
    portal.rest(f"jobs/{job}/cancel/", {})


def test_the_key_metric_is_drawn_and_grows(visit: Any, portal: Any) -> None:
    document = {"code": {"files": {"train.py": TICKING}}, "runtime": "numpy"}
    job = submit(portal, "drawn", "python train.py", **document)
    portal.wait_for(job, "running")
    bob = visit(viewport={"width": 1280, "height": 900})
    page = bob.sign_in("bob")
    page.goto("/jobs/?q=drawn")
    expect(row(page, job).locator('[data-bind="metric-key"]')).to_have_text("train/loss", timeout=20_000)
    line = row(page, job).locator("[data-spark] polyline").first
    expect(line).to_be_attached(timeout=20_000)
    before = line.get_attribute("points")
    expect(line).not_to_have_attribute("points", before, timeout=10_000)
    expect(row(page, job).locator("progress")).to_be_visible()
    bob.picture("list-running")
    portal.rest(f"jobs/{job}/cancel/", {})


def test_the_list_by_keyboard_alone(visit: Any, portal: Any) -> None:  # UX-B8
    one, two = submit(portal, "keys-1"), submit(portal, "keys-2")
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs/**")
    live(page)
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.type("keys-")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?q=keys-$"))
    live(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(row(page, one).locator("a.title")).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("[data-bulk-count]")).to_have_text("1 selected")
    page.keyboard.press("Escape")
    expect(page.locator("#bulk")).to_be_hidden()
    page.keyboard.press(".")
    menu = page.locator("dialog[open]")
    expect(menu).to_contain_text("Clone")
    alice.picture("list-row-menu")
    page.keyboard.press("Escape")
    expect(row(page, one).locator("a.title")).to_be_focused()
    page.keyboard.press("s")
    expect(page.locator("#bulk-dialog")).to_contain_text("Stop 1 job?")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.locator("#bulk-why").focus()
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    expect(row(page, one).locator(".pill")).to_have_text(re.compile("cancelled"), timeout=20_000)
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_contain_text("select the row")
    alice.picture("list-keys")
    page.locator("dialog[open] input[type=checkbox]").uncheck()
    page.keyboard.press("Escape")
    page.locator("body").press("n")
    page.wait_for_timeout(300)
    assert "/jobs/?q=keys-" in page.url, "single keys are off"
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.palette input")).to_be_focused()
    page.keyboard.type("keys-2")
    option = page.locator('dialog.palette [role="option"][aria-selected="true"]')
    expect(option).to_contain_text(two, timeout=5000)
    alice.picture("list-palette")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{two}/")
    portal.rest(f"jobs/{two}/cancel/", {})


def test_columns_and_views_are_in_the_address_and_come_back(visit: Any, portal: Any) -> None:  # UX-B1, B10, D1
    job = submit(portal, "viewed", "true", tags=["mnist"])
    portal.wait_for(job, "succeeded")
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/jobs/?q=viewed")
    page.click("[data-columns] summary")
    page.check("[data-columns] input[value=tags]")
    page.uncheck("[data-columns] input[value=metric]")
    page.locator("[data-columns] li", has_text="Tags").locator("[data-up]").click()
    alice.picture("list-columns")
    page.click("[data-columns] button.primary")
    page.wait_for_url(re.compile("cols="))
    assert "cols=status%2Cname%2Chow%2Cwho%2Cgpus%2Cspent%2Cage%2Ctags%2C" not in page.url
    expect(row(page, job).locator("td.tags a")).to_have_text("mnist")
    expect(row(page, job).locator("td.metric")).to_have_count(0)
    page.click("summary:has-text('Save this view')")
    page.fill("#view-name", "Tagged")
    page.select_option("#view-place", "vision")
    page.click(".views details[open] button.primary")
    expect(page.locator(".view[aria-current]")).to_contain_text("Tagged")
    page.go_back()
    live(page)
    page.go_forward()
    expect(page.locator(".view[aria-current]")).to_contain_text("Tagged")
    bob = visit().sign_in("bob")
    bob.goto("/jobs/")
    bob.click(".view:has-text('Tagged')")
    expect(row(bob, job).locator("td.tags a")).to_have_text("mnist")
    bob.click(".chip.succeeded")
    expect(bob.locator(".chip.failed[aria-current]")).to_have_count(0)
    assert "status=" in bob.url and "cols=" in bob.url


def test_names_however_long_wrap_on_a_phone(visit: Any, portal: Any) -> None:
    name = "-".join(["a-sweep-with-lr-0.0003"] * 6) + "-the-end"
    job = submit(portal, name, "true")
    phone = visit(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = phone.sign_in("alice")
    page.goto("/jobs/?q=the-end")
    expect(row(page, job).locator("a.title")).to_contain_text("the-end")
    page.wait_for_timeout(400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    phone.picture("phone-list-long-name")


def test_numbers_times_and_reasons_go_with_what_happens(visit: Any, portal: Any) -> None:
    job = submit(portal, "counted-1", "sleep 4; python3 nosuch.py")
    portal.wait_for(job, "running")
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/jobs/?q=counted-&status=queued,starting,running")
    live(page)
    running, failed = page.locator(".chip.running"), page.locator(".chip.failed")
    expect(running).to_have_text(re.compile(r"running 1$"))
    spent = row(page, job).locator('[data-bind="spent"]')
    before = spent.inner_text()
    expect(spent).not_to_have_text(before, timeout=3000)
    expect(failed).to_have_text(re.compile(r"failed 1$"), timeout=20_000)
    expect(running).to_have_text(re.compile(r"running 0$"))
    expect(page.locator('[data-refresh="count"]')).to_have_text("0 jobs")
    page.goto("/jobs/?q=counted-")
    live(page)
    expect(row(page, job).locator(".why").first).to_have_text("The script nosuch.py is not there.")
    second = submit(portal, "counted-2", "exit 3")
    expect(failed).to_have_text(re.compile(r"failed 2$"), timeout=20_000)
    alice.picture("list-counted")
    page.goto(f"/jobs/{second}/logs/")
    expect(page.locator('[data-bind="reason"]').first).to_contain_text("The program ended with exit code 3")


def test_the_dialog_says_which_are_not_ones_own_to_stop(visit: Any, portal: Any) -> None:
    jobs = [submit(portal, f"others-{number}", "sleep 60") for number in range(2)]
    bob = visit(viewport={"width": 1280, "height": 900})
    page = bob.sign_in("bob")
    page.goto("/jobs/?q=others-")
    live(page)
    page.locator("[data-pick-all]").check()
    page.click("#bulk button[value=stop]")
    dialog = page.locator("#bulk-dialog")
    expect(dialog).to_contain_text("Stop 2 jobs?")
    expect(dialog.locator("[data-bulk-note]")).to_have_text("2 of them are not yours to stop and will be left alone.")
    bob.picture("list-not-yours")
    page.keyboard.press("Escape")
    for job in jobs:
        portal.rest(f"jobs/{job}/cancel/", {})


def test_a_wrong_address_is_said_in_words(visit: Any, portal: Any) -> None:
    alice = visit(viewport={"width": 360, "height": 780}, is_mobile=True)
    page = alice.sign_in("alice")
    page.goto("/jobs/?namespace=nope&status=runing&since=soon")
    expect(page.locator(".problems p")).to_have_count(3)
    expect(page.locator(".blank h2")).to_have_text("Nothing matches")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    alice.picture("list-wrong-address-360")


def column_width(page: Page, column: str) -> float:
    return float(page.locator(f'th[data-column="{column}"]').bounding_box()["width"])  # type: ignore[index]


def test_ux_b10_a_column_is_resized_by_hand_and_by_key_and_comes_back(visit: Any, portal: Any) -> None:
    job = submit(portal, "-".join(["a-rather-long-name-of-a-job-that-wraps"] * 3), "true", tags=["sized"])
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/jobs/?tag=sized")
    live(page)
    own = column_width(page, "name")
    edge = page.locator('th[data-column="name"] .grip')
    box = edge.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 125, box["y"] + 8, steps=6)
    page.mouse.up()
    drawn = column_width(page, "name")
    assert abs(drawn - own - 120) < 6
    assert "/jobs/?tag=sized" in page.url, "drawing an edge orders nothing"
    edge.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert abs(column_width(page, "name") - drawn + 32) < 6
    expect(edge).to_have_attribute("aria-valuenow", str(round(column_width(page, "name"))))
    alice.picture("list-widths")
    page.reload()
    live(page)
    assert abs(column_width(page, "name") - drawn + 32) < 6, "kept in this browser"
    page.locator('th[data-column="name"] .grip').focus()
    page.keyboard.press("Home")
    assert abs(column_width(page, "name") - own) < 6
    gpus = page.locator('th[data-column="gpus"] .grip')
    gpus.focus()
    page.keyboard.press("ArrowRight")
    gpus.dblclick()
    assert page.evaluate("localStorage.getItem('list-widths')") is None
    portal.wait_for(job, "succeeded")


def test_ux_b10_density_is_one_press_and_the_head_stays_in_sight(visit: Any, portal: Any) -> None:
    for number in range(3):
        submit(portal, f"dense-{number}", "true")
    alice = visit(viewport={"width": 1280, "height": 420})
    page = alice.sign_in("alice")
    page.goto("/jobs/?q=dense-")
    live(page)
    tall = page.locator("tbody tr").first.bounding_box()["height"]
    page.locator("[data-density] a", has_text="Compact").click()
    page.wait_for_url(re.compile("density=compact"))
    live(page)
    assert page.locator("tbody tr").first.bounding_box()["height"] < tall
    expect(page.locator("[data-density] a[aria-current]")).to_have_text("Compact")
    page.mouse.wheel(0, 600)
    expect(page.locator('th[data-column="name"]')).to_be_in_viewport()
    with page.expect_download() as download:
        page.locator("a[download]").click()
    text = download.value.path().read_text("utf-8-sig")
    assert text.startswith("id,status,name,") and text.count("dense-") == 3


def test_ux_b14_ended_jobs_are_archived_together_and_undone(visit: Any, portal: Any) -> None:
    jobs = [submit(portal, f"away-{number}", "true") for number in range(2)]
    for job in jobs:
        portal.wait_for(job, "succeeded")
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/jobs/?q=away-")
    live(page)
    page.locator("[data-pick-all]").check()
    expect(page.locator("#bulk button[value=priority]")).to_be_hidden()
    expect(page.locator("#bulk button[value=unarchive]")).to_be_hidden()
    alice.picture("list-archive-bar")
    page.click("#bulk button[value=archive]")
    results = page.locator("[data-bulk-results]")
    expect(results).to_contain_text("Archive: 2 done, 0 skipped, 0 refused")
    expect(results).to_contain_text("nothing is deleted")
    expect(row(page, jobs[0]).locator('[data-bind="left"]')).to_be_visible(timeout=10_000)
    alice.picture("list-archived")
    results.locator("button", has_text="Undo").click()
    expect(results).to_contain_text("Bring back: 2 done", timeout=10_000)
    expect(row(page, jobs[0]).locator('[data-bind="left"]')).to_be_hidden(timeout=10_000)
    row(page, jobs[0]).locator("a.title").focus()
    page.keyboard.press(".")
    page.locator("dialog[open] button", has_text="Archive").click()
    expect(row(page, jobs[0]).locator('[data-bind="left"]')).to_be_visible(timeout=10_000)
    page.goto("/jobs/?q=away-&archived=1")
    expect(row(page, jobs[0]).locator('[data-bind="archived"]')).to_have_text("archived")
    expect(row(page, jobs[1]).locator('[data-bind="archived"]')).to_be_hidden()
    alice.picture("list-with-archived")
    page.goto(f"/jobs/{jobs[0]}/")
    expect(page.locator('[data-refresh="archived"]')).to_contain_text("archived by alice on")
    alice.picture("job-archived")
    page.locator(".actions button", has_text="Bring back").click()
    expect(page.locator('[data-refresh="archived"]')).to_have_text("")
    phone = visit(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = phone.sign_in("alice")
    page.goto("/jobs/?q=away-")
    page.locator("tbody td.pick input").first.check()
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    phone.picture("phone-list-archive-bar")


def test_ux_2_3_what_waits_shows_its_place_and_moves_up(visit: Any, portal: Any) -> None:
    every = sum(cluster["gpus"]["total"] for cluster in portal.rest("clusters/")["results"])
    all_gpus: dict[str, Any] = {"resources": {"gpus": every}}
    first = submit(portal, "line-0", **all_gpus)
    portal.wait_for(first, "running")
    second, third = submit(portal, "line-1", **all_gpus), submit(portal, "line-2", **all_gpus)
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/jobs/?q=line-&sort=position")
    live(page)
    expect(row(page, second).locator("[data-place]")).to_have_text("#1 of 2")
    expect(row(page, third).locator("[data-place]")).to_have_text("#2 of 2")
    expect(row(page, third).locator(".why").first).to_contain_text("GPU")
    alice.picture("list-places")
    # by keyboard alone: the last in line goes first
    row(page, third).locator("a.title").focus()
    page.keyboard.press("x")
    expect(page.locator("#bulk-priority")).to_be_visible()
    page.locator("#bulk-priority").focus()
    page.keyboard.type("high")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("[data-bulk-results]")).to_contain_text("Priority: high; it was normal.")
    portal.rest(f"jobs/{first}/cancel/", {"now": True})
    portal.wait_for(third, "running")
    expect(row(page, second).locator("[data-place]")).to_have_text("#1 of 1", timeout=15_000)
    expect(row(page, third).locator("[data-place]")).to_be_hidden()
    phone = visit(viewport={"width": 360, "height": 740})
    small = phone.sign_in("alice")
    small.goto("/jobs/?q=line-")
    expect(row(small, second).locator("[data-place]")).to_be_visible()
    small.wait_for_timeout(300)
    assert small.evaluate("document.documentElement.scrollWidth") <= 360
    phone.picture("phone-list-places")
    for job in (second, third):
        portal.rest(f"jobs/{job}/cancel/", {"now": True})
