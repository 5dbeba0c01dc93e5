"""What is said in passing: toasts (UX-B5), the bell that keeps them, and a notice of the browser when a job ends (UX-B13)."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

# what the desktop would show: Chromium without a head has no place for it
DESKTOP = """
window.shown = [];
window.asked = 0;
window.Notification = class extends EventTarget {
  static permission = "PERMISSION";
  static async requestPermission() { window.asked += 1; return (window.Notification.permission = "ANSWER"); }
  constructor(title, options) { super(); this.title = title; Object.assign(this, options); window.shown.push(this); }
  close() {}
};
"""
COUNT = "() => window.shown.length"


def open_job(visit: Any, job: str, *, permission: str = "default", answer: str = "granted", **options: Any) -> Any:
    one = visit(**options)
    one.context.add_init_script(DESKTOP.replace("PERMISSION", permission).replace("ANSWER", answer))
    one.sign_in("alice").goto(f"/jobs/{job}/")
    expect(one.page.locator("[data-live][data-state=live]").first).to_be_visible(timeout=15_000)
    return one


def named(portal: Any, name: str) -> str:
    document = {"namespace": "vision", "runtime": "shell", "command": "sleep 600", "stop_grace": "1s", "name": name}
    return str(portal.rest("jobs/", document)["id"])


def tell_me(page: Page) -> Any:
    return page.get_by_role("button", name="Tell me when it ends")


def test_b13_one_notice_for_one_end_whatever_tabs_are_open(visit: Any, portal: Any) -> None:
    job = named(portal, "told")
    portal.wait_for(job, "running")
    one = open_job(visit, job, viewport={"width": 1280, "height": 900})
    page = one.page
    assert page.evaluate("window.asked") == 0, "nobody is asked before a click"
    tell_me(page).click()
    expect(page.get_by_role("button", name="You will be told")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("window.asked") == 1
    one.picture("tell-me")
    second, elsewhere = one.context.new_page(), one.context.new_page()
    second.goto(f"/jobs/{job}/logs/")
    expect(second.get_by_role("button", name="You will be told")).to_be_visible()
    elsewhere.goto("/")
    elsewhere.wait_for_timeout(1500)
    elsewhere.evaluate(
        """() => { Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
        document.dispatchEvent(new Event("visibilitychange")); }"""
    )
    portal.rest(f"jobs/{job}/cancel/", {"now": True})
    pages = [page, second, elsewhere]
    for _ in range(60):
        if sum(one.evaluate(COUNT) for one in pages):
            break
        page.wait_for_timeout(250)
    page.wait_for_timeout(2000)  # a second notice would have come by now
    told = [one for one in pages if one.evaluate(COUNT)]
    assert len(told) == 1
    assert told[0].evaluate("[window.shown.length, window.shown[0].title]") == [1, "told was cancelled"]
    told[0].evaluate("window.shown[0].dispatchEvent(new Event('click'))")
    told[0].wait_for_url(f"**/jobs/{job}/**")
    page.goto("/")
    page.get_by_role("button", name="Notices").click()
    expect(page.locator("dialog .notices li", has_text="told was cancelled")).to_have_count(1)
    expect(page.locator("dialog[open]")).not_to_contain_text("You will be told when these end")


def test_b13_it_is_kept_here_listed_and_taken_back(visit: Any, portal: Any) -> None:
    job = named(portal, "listed")
    portal.wait_for(job, "running")
    one = open_job(visit, job, viewport={"width": 1280, "height": 900})
    page = one.page
    tell_me(page).click()
    page.reload()
    expect(page.get_by_role("button", name="You will be told")).to_be_visible()
    page.get_by_role("button", name="Notices").press("Enter")
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("You will be told when these end")
    one.picture("bell")
    dialog.get_by_role("button", name="Do not tell when listed ends").press("Enter")
    page.keyboard.press("Escape")
    expect(tell_me(page)).to_be_visible()
    portal.rest(f"jobs/{job}/cancel/", {"now": True})
    page.wait_for_function("() => document.title.startsWith('■')", timeout=30_000)
    assert page.evaluate(COUNT) == 0


@pytest.mark.parametrize(
    ("permission", "answer", "words"),
    [
        ("denied", "denied", "This browser refuses notices"),
        ("default", "default", "were not allowed"),
        ("default", "denied", "This browser refuses notices"),
    ],
)
def test_b13_a_browser_that_refuses_is_told_plainly(
    visit: Any, portal: Any, permission: str, answer: str, words: str
) -> None:
    job = portal.submit("sleep 600")
    page = open_job(visit, job, permission=permission, answer=answer).page
    tell_me(page).click()
    expect(page.locator(".toast")).to_contain_text(words)
    expect(tell_me(page)).to_have_attribute("aria-pressed", "false")
    page.evaluate("() => { delete window.Notification; }")
    page.reload()
    page.evaluate("() => { delete window.Notification; }")
    tell_me(page).click()
    expect(page.locator(".toast").last).to_contain_text("has no notices for web pages")
    portal.rest(f"jobs/{job}/cancel/", {"now": True})


def test_b5_a_toast_stays_six_seconds_and_longer_for_who_reads_it(visit: Any, portal: Any) -> None:
    job = portal.submit("true")
    portal.wait_for(job, "succeeded")
    one = visit(viewport={"width": 1280, "height": 900})
    page = one.sign_in("alice")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/jobs/{job}/")
    page.clock.install()
    toast = page.locator(".toast")
    share = page.get_by_role("button", name="Share")
    share.click()
    expect(toast).to_contain_text("Address copied")
    expect(page.locator("[data-announce][aria-live=polite]")).to_contain_text("Address copied")
    page.clock.fast_forward(5_500)
    expect(toast).to_have_count(1)
    page.clock.fast_forward(1_000)
    expect(toast).to_have_count(0)
    share.click()
    toast.hover()
    page.clock.fast_forward(20_000)
    expect(toast).to_have_count(1)
    toast.get_by_role("button").focus()
    page.mouse.move(5, 5)
    page.clock.fast_forward(20_000)
    expect(toast).to_have_count(1)
    one.picture("toast")
    page.keyboard.press("Enter")
    expect(toast).to_have_count(0)


def test_b5_the_bell_keeps_the_last_fifty_for_each_person(visit: Any, portal: Any) -> None:
    one = visit(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = one.sign_in("alice")
    page.evaluate(
        """() => localStorage.setItem("notices:alice", JSON.stringify(Array.from({ length: 49 }, (_, n) =>
        ({ words: `<b>notice</b> ${n}`, href: n ? "" : "javascript:alert(1)", at: 1760000000000 - n }))))"""
    )
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    job = portal.submit("true")
    page.goto(f"/jobs/{job}/")
    for _ in range(2):
        page.get_by_role("button", name="Share").click()
    bell = page.get_by_role("button", name="Notices")
    expect(bell.locator("[data-bell-count]")).not_to_be_empty()
    bell.press("Enter")
    rows = page.locator("dialog .notices li")
    expect(rows).to_have_count(50)
    expect(rows.filter(has_text="Address copied")).to_have_count(1)
    expect(rows.filter(has_text="<b>notice</b> 0").locator("a")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    one.picture("bell-phone-dark")
    page.get_by_role("button", name="Clear the list").click()
    expect(rows).to_have_count(0)
    page.keyboard.press("Escape")
    expect(bell.locator("[data-bell-count]")).to_be_hidden()
    other = visit().sign_in("bob")
    other.get_by_role("button", name="Notices").click()
    expect(other.locator("dialog[open]")).to_contain_text("Nothing was said yet")
