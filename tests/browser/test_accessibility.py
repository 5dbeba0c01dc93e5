"""No serious finding of axe on any page, in both themes; nothing cut on a phone; submit, stop and search by keyboard (E16)."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD

pytestmark = pytest.mark.browser

TALKS = (
    "python3 -c \"import trainhall,time\nfor s in range(120):\n trainhall.log({'loss': 1/(s+1)}, step=s)\n"
    " print('step', s, flush=True)\n time.sleep(0.05)\nprint('needle here')\nraise ValueError('labels are missing')\""
)
TABS = ("", "metrics/", "logs/", "workers/", "events/", "files/", "spec/")
ADMINS = (
    "/admin/runtimes/",
    "/admin/runtimes/new/",
    "/admin/runtimes/shell/",
    "/admin/access/",
    "/admin/access/?person=alice",
    "/admin/access/?person=a",
    "/admin/users/",
    "/audit/",
)
PAGES = (
    "/",
    "/jobs/",
    "/jobs/?status=failed",
    "/jobs/?q=nothing-of-this-name",
    "/jobs/new/",
    "/me/tokens/",
    "/me/namespaces/",
)


@pytest.fixture(scope="module")
def failed_job(portal: Any) -> str:
    job = str(portal.submit(TALKS))
    portal.wait_for(job, "failed", seconds=60)
    return job


def serious(page: Page) -> list[str]:
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{page.url} {rule['id']}: {rule['help']}: {[node['html'][:200] for node in rule['nodes']][:3]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


def is_settled(page: Page) -> None:
    page.wait_for_load_state("load")
    page.wait_for_timeout(700)  # charts and fragments have come


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(visit: Any, failed_job: str, theme: str) -> None:
    page = visit(color_scheme=theme, viewport={"width": 1280, "height": 900}).sign_in("alice")
    wrong: list[str] = []
    tabs = [f"/jobs/{failed_job}/{tab}" for tab in TABS]
    for path in (*PAGES, *tabs, f"/jobs/new/?from={failed_job}", "/status/", "/nowhere/"):
        page.goto(path)
        is_settled(page)
        wrong += serious(page)
    stranger = visit(color_scheme=theme)
    stranger.page.goto("/login/")
    wrong += serious(stranger.page)
    admin = visit(color_scheme=theme).sign_in("admin")
    for path in ADMINS:
        admin.goto(path)
        is_settled(admin)
        wrong += serious(admin)
    assert not wrong, "\n".join(wrong)
    admin.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert serious(admin), "a button without a name is found, so the silence above means something"


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_cut_and_no_page_scrolls_sideways(visit: Any, failed_job: str, width: int) -> None:
    page = visit(viewport={"width": width, "height": 740}).sign_in("alice")
    wide: list[str] = []
    for path in (*PAGES, *(f"/jobs/{failed_job}/{tab}" for tab in TABS), "/status/"):
        page.goto(path)
        is_settled(page)
        if (over := page.evaluate("document.documentElement.scrollWidth - innerWidth")) > 0:
            wide.append(f"{path} by {over} px")
    admin = visit(viewport={"width": width, "height": 740}).sign_in("admin")
    for path in ADMINS:
        admin.goto(path)
        if (over := admin.evaluate("document.documentElement.scrollWidth - innerWidth")) > 0:
            wide.append(f"{path} by {over} px")
    assert not wide, wide


def press_to(page: Page, selector: str, *, limit: int = 150) -> None:
    """Tab until the focus is there; fail where the keyboard never gets there."""
    for _press in range(limit):
        if page.evaluate("selector => document.activeElement?.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard did not reach {selector} in {limit} steps")


def test_sign_in_submit_find_a_line_and_stop_by_keyboard_alone(visit: Any) -> None:
    page = visit(viewport={"width": 1280, "height": 900}).page
    page.goto("/login/")
    press_to(page, "input[name=username]")
    page.keyboard.type("alice")
    page.keyboard.press("Tab")
    press_to(page, "input[name=password]")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/login/" not in url)

    page.goto("/jobs/new/")
    press_to(page, "[name=name]")
    page.keyboard.type("by-keyboard")
    press_to(page, "[name=code_kind]")
    page.keyboard.press("ArrowUp")  # from the first radio to the last: no code
    press_to(page, "[name=command]")
    page.keyboard.type("for n in $(seq 1 600); do echo tick $n; sleep 0.1; done")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda url: "/jobs/new" not in url)
    page.wait_for_function("() => document.title.startsWith('▶')", timeout=30_000)

    press_to(page, "nav.tabs a[href$='/logs/']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/logs/")
    page.wait_for_function("() => document.querySelectorAll('[data-log=full] .line').length > 12")
    press_to(page, "input[type=search]")
    page.keyboard.type("tick 9")
    page.keyboard.press("Enter")
    expect(page.locator(".line mark").first).to_be_visible()

    press_to(page, "form[action$='/stop/'] button")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    press_to(page, "[data-confirm-yes]")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.title.startsWith('■')", timeout=40_000)
