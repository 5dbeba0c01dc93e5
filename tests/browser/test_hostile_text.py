"""F26: whatever people, programs and the cluster write is text, on every page, in charts, tooltips, toasts and the palette."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.hostile import SHORT, TEXTS, Planted, plant
from tests.flows.access_table import ROUTES
from tests.portal.running import Portal

pytestmark = pytest.mark.browser

NO_PAGES = {
    "/words.js",
    "/healthz",
    "/readyz",
    "/metrics",
    "/sdk/",
    "/sdk/<name>",
    "/code/<sha256>/",
    "/jobs/<job_id>/logs/raw/",
    "/jobs/export.csv",
    "/audit/export.csv",
}


def pages() -> list[str]:
    """Every route of the site that is a page, or a fragment that a page takes in."""
    return [
        path
        for path, rules in ROUTES.items()
        if "GET" in rules and not path.startswith("/api/") and path not in NO_PAGES
    ]


# Before any script of a page: what the policy refuses is kept, whoever caused it.
WITNESS = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.__violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""
# what a text must not have become, whoever would have refused to run it
MADE = """() => [...document.querySelectorAll("*")].filter((one) =>
  [...one.attributes].some(({ name, value }) => name.startsWith("on")
    || (["href", "src", "action", "xlink:href"].includes(name) && /^\\s*javascript:/i.test(value)))
  || one.matches("img[src='x'], base, iframe, object, embed, script:not([src], [type='application/json'])")
).map((one) => one.outerHTML.slice(0, 200))"""

# what a long word pushes beyond the edge of a page; fragments have no style of their own
WIDE = """() => document.querySelector("main") && document.documentElement.scrollWidth > innerWidth
  && [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.outerHTML.slice(0, 150)).slice(0, 8)"""


@pytest.fixture(scope="module")
def planted(portal: Portal) -> Iterator[Planted]:
    planted = plant(portal)
    yield planted
    portal.rest(f"jobs/{planted.running}/cancel/", {})


class Watched:
    """A browser that keeps what a page ran, what its policy refused, and what a text became in it."""

    def __init__(self, visit: Any, name: str, **options: Any) -> None:
        self.visit: Visit = visit(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.visit.context.add_init_script(WITNESS)
        self.page: Page = self.visit.sign_in(name)
        self.wrong: list[str] = []
        self.said: list[str] = []
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))

    def look(self, path: str, *, opened: bool = True) -> None:
        answer = self.page.goto(path)
        assert answer is not None and answer.status in (200, 404), (path, answer and answer.status)
        if opened:
            self.page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        self.settle(path)

    def settle(self, where: str) -> None:
        page = self.page
        page.wait_for_load_state("load")
        page.wait_for_timeout(500)  # fragments, charts and live rows have come
        if page.evaluate("window.__pwned"):
            self.wrong.append(f"{where}: a script ran")
        self.wrong += [f"{where}: refused by the policy: {one}" for one in page.evaluate("window.__violations")]
        self.wrong += [f"{where}: made of a text: {one}" for one in page.evaluate(MADE)]
        if wide := page.evaluate(WIDE):
            self.wrong.append(f"{where}: wider than the window: {wide}")

    def is_clean(self) -> None:
        assert not self.wrong, "\n".join(sorted(set(self.wrong)))
        assert not self.said


def test_every_page_shows_text_as_text(visit: Any, planted: Planted) -> None:
    alice, admin = Watched(visit, "alice"), Watched(visit, "admin")
    tokens = alice.page
    tokens.goto("/me/tokens/")
    for text in SHORT[:4]:
        tokens.fill("[name=name]", text)
        tokens.click("main form button.primary >> text=Make it")
        expect(tokens.locator("main")).to_contain_text(text)
    for path in pages():
        if "<job_id>" in path:
            for job in (planted.failed, planted.running, planted.stopped):
                alice.look(path.replace("<job_id>", job))
        else:
            (admin if path.startswith(("/admin/", "/audit/")) else alice).look(path.replace("<slug>", "hostile"))
    for path in (
        f"/jobs/new/?from={planted.failed}",
        f"/jobs/new/?from={planted.fetched}",
        f"/jobs/new/?draft={planted.draft}",
        f"/jobs/{planted.failed}/logs/?q={quote(TEXTS[2])}",
        f"/jobs/{planted.failed}/metrics/?q={quote(TEXTS[2])}",
        *(
            f"/jobs/?q={quote(text)}&tag={quote(text)}&user={quote(text)}&sort={quote(text)}&cols={quote(text)}"
            for text in TEXTS[:5]
        ),
        *(f"/{quote(text, safe='')}/" for text in TEXTS[:3]),
        f"/login/?next={quote(TEXTS[6])}",
    ):
        alice.look(path)
    alice.look(f"/jobs/{planted.failed}/")
    alice.visit.picture("hostile-job")
    alice.look("/jobs/")
    alice.visit.picture("hostile-list")
    for part in TEXTS[:3]:
        expect(alice.page.locator("main")).to_contain_text(part[:20])  # it is there, as text
    alice.is_clean()
    admin.is_clean()


def test_charts_tooltips_palette_toasts_and_dialogs_show_text_as_text(visit: Any, planted: Planted) -> None:
    alice = Watched(visit, "alice")
    page = alice.page
    alice.look(f"/jobs/{planted.failed}/metrics/", opened=False)
    charts = page.locator("[data-chart]:visible")
    expect(charts.locator(".main-svg").first).to_be_visible(timeout=30_000)
    for number in range(min(6, charts.count())):
        plot = charts.nth(number).locator(".plot")
        plot.scroll_into_view_if_needed()
        plot.hover()
        page.wait_for_timeout(150)
        plot.focus()
        page.keyboard.press("ArrowRight")
    alice.settle("charts and their tooltips")
    alice.visit.picture("hostile-charts")
    alice.look(f"/jobs/{planted.running}/", opened=False)
    page.keyboard.press("Control+k")
    palette = page.locator("dialog.palette")
    for text in (*SHORT[:4], "k"):
        palette.locator("input").fill(text)
        page.wait_for_timeout(500)
    palette.locator("input").fill("<")
    expect(palette.locator("[role=option]").first).to_contain_text("<", timeout=8000)
    alice.visit.picture("hostile-palette")
    alice.settle("palette")
    palette.locator("input").fill("")
    page.keyboard.press("Escape")
    expect(palette).to_have_count(0)
    page.locator("form[action$='/stop/'] button").first.click()
    page.locator("#confirm [data-confirm-reason] input").fill(TEXTS[2])
    alice.settle("the question before a stop")
    page.locator("#confirm button[value=no]").click()
    alice.look(f"/jobs/{planted.failed}/logs/", opened=False)
    expect(page.locator("[data-log=full] .line").first).to_be_visible(timeout=10_000)
    assert "<script>" in page.locator("[data-log=full]").inner_text()
    assert page.locator("[data-log=full] a[href^='javascript']").count() == 0
    alice.settle("lines")
    alice.visit.picture("hostile-logs")
    page.goto("/jobs/?q=zz-hostile-view")
    page.locator("details:has(#view-name) > summary").first.click()
    page.fill("#view-name", "<img src=x onerror=window.__pwned=1> kept")
    page.click("button:has-text('Save')")
    expect(page.locator(".messages")).to_contain_text("<img src=x", timeout=8000)
    alice.settle("the message after a view is saved")
    alice.is_clean()
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('iframe'), { src: 'https://example.org/' }))"
    )
    alice.settle("a frame of somebody else")
    assert len(alice.wrong) == 2, "one is found by its element and by the policy, so the silence above means something"
    alice.visit.complaints.clear()


def test_files_and_raw_lines_are_fetched_and_never_shown_as_a_page(
    visit: Any, portal: Portal, planted: Planted
) -> None:
    alice = Watched(visit, "alice")
    left = portal.rest(f"jobs/{planted.failed}/files/")
    paths = [file["path"] for file in left["results"]]
    assert sum("<" in path for path in paths) > 8
    for url in (
        f"/jobs/{planted.failed}/logs/raw/",
        *(f"/api/v1/jobs/{planted.failed}/files/{quote(path)}" for path in paths),
    ):
        answer = alice.page.request.get(url)
        kind = answer.headers["content-type"]
        assert answer.status == 200 and answer.headers["x-content-type-options"] == "nosniff", url
        assert answer.headers.get("content-disposition", "").startswith("attachment") or kind.startswith(
            "text/plain"
        ), url
        assert not kind.startswith(("text/html", "image/svg", "application/xhtml", "text/xml")), (url, kind)
    alice.is_clean()


# a character that nobody sees, outside of an element that shows its code and holds its effect
BARE = r"""() => {
  const hidden = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/;
  const found = hidden.test(document.title) ? [document.title] : [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (hidden.test(node.data) && !node.parentElement.closest("bdi.odd[data-code], textarea, script")) found.push(node.data);
  }
  for (const one of document.querySelectorAll("[title], [aria-label]")) {
    if (hidden.test(one.title) || hidden.test(one.ariaLabel ?? "")) found.push(one.outerHTML.slice(0, 200));
  }
  return found.map((text) => text.slice(0, 200));
}"""


def test_no_name_is_disguised_as_another_one(visit: Any, portal: Portal, planted: Planted) -> None:
    alice = Watched(visit, "alice")
    page = alice.page
    wrong: list[str] = []
    for path in (
        "/",
        "/jobs/",
        *(f"/jobs/{planted.stopped}/{tab}" for tab in ("", "logs/", "events/", "workers/", "files/")),
    ):
        alice.look(path, opened=False)  # what is folded is looked through all the same
        wrong += [f"{path}: {text!r}" for text in page.evaluate(BARE)]
    alice.look(f"/jobs/{planted.stopped}/")
    assert "[U+202E]gnp.exe" in page.title()
    expect(page.locator("h1 bdi.odd").first).to_have_attribute("data-code", "U+202E")
    alice.visit.picture("disguised-job")
    alice.look(f"/jobs/{planted.failed}/files/")
    wrong += [f"files: {text!r}" for text in page.evaluate(BARE)]
    alice.look(f"/jobs/{planted.failed}/logs/?q=gnp")
    page.wait_for_selector("[data-log=full] bdi.odd")
    wrong += [f"lines: {text!r}" for text in page.evaluate(BARE)]
    alice.visit.picture("disguised-logs")
    line = page.locator("[data-log=full] .line .x", has_text="gnp.exe").first
    assert "\u202egnp.exe" in (line.text_content() or ""), "what is copied is what was written"
    assert not wrong, "\n".join(wrong)
    alice.is_clean()
