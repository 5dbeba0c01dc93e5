"""The charts of a job in a real browser: one view in the address, true points, one crosshair, pins, numbers by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

LONG = "a/very/long/metric/name/that/does/not/fit/in/a/card/of/three/hundred/pixels/whatever/one/does"
RICH = f"""
import math, random, time
import trainhall
random.seed(1)
for step in range(6000):
    values = {{
        "train/loss": 2.2 * math.exp(-step / 1500) + random.gauss(0, 0.05) + 0.2,
        "train/grad_norm": 500.0 if step == 3210 else abs(random.gauss(1, 0.2)),
        "epoch": step / 600,
        "signed": math.sin(step / 300),
        "{LONG}": random.random(),
    }}
    if 4000 < step < 4010:
        values["train/loss"] = [math.nan, math.inf][step % 2]
    if step % 100 == 0:
        values |= {{"val/loss": 2.3 * math.exp(-step / 1500) + 0.35, "only_nan": math.nan}}
    if step == 5:
        values["one_point"] = 3.25
    trainhall.log(values, step=step)
print("logged", flush=True)
time.sleep(SLEEP)
"""
# of the line of a chart: how many points, and the largest distance between two
LINE = """(key) => {
  const plot = document.querySelector(`[data-chart][data-key="${key}"] .plot`);
  const line = plot.data.filter((one) => one.mode !== "markers" && one.name).at(-1);
  const [low, high] = plot._fullLayout.xaxis.range;
  return { count: line.x.length, range: [low, high], y: plot._fullLayout.yaxis.range, type: plot._fullLayout.yaxis.type };
}"""


def submit(portal: Any, script: str, **more: Any) -> str:
    document = {
        "namespace": "vision",
        "runtime": "numpy",
        "name": "curves",
        "command": "python train.py",
        "code": {"files": {"train.py": script}},
        "stop_grace": "1s",
        **more,
    }
    return str(portal.rest("jobs/", document)["id"])


@pytest.fixture(scope="module")
def rich(portal: Any) -> str:
    """A job that has ended, with every odd thing a chart may meet."""
    job = submit(portal, RICH.replace("SLEEP", "0"))
    portal.wait_for(job, "succeeded", seconds=120)
    return job


def card(page: Page, key: str) -> Locator:
    return page.locator(f'[data-chart][data-key="{key}"]')


def drawn(page: Page, key: str) -> Any:
    expect(card(page, key).locator(".main-svg").first).to_be_visible(timeout=30_000)
    page.wait_for_function(f"() => ({LINE})({key!r}).count > 0", timeout=15_000)
    return page.evaluate(LINE, key)


def until(page: Page, key: str, holds: str) -> None:
    page.wait_for_function(f"(key) => {{ const line = ({LINE})(key); return {holds}; }}", arg=key, timeout=15_000)


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def drag(page: Page, key: str, start: float, end: float) -> None:
    card(page, key).scroll_into_view_if_needed()
    box = card(page, key).locator(".plot .nsewdrag").first.bounding_box()
    assert box is not None
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], height, steps=3)
    page.mouse.move(box["x"] + end * box["width"], height, steps=3)
    page.mouse.up()


@pytest.fixture
def metrics(visit: Callable[..., Any], rich: str) -> Any:
    """Alice on the Metrics tab of that job."""
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto(f"/jobs/{rich}/metrics/")
    drawn(page, "train/loss")
    return alice


def test_a_zoom_brings_true_points_to_all_charts_and_a_double_click_takes_it_back(metrics: Any) -> None:
    page = metrics.page
    whole = drawn(page, "train/loss")
    caption = card(page, "train/loss").locator("figcaption")
    expect(caption).to_contain_text("of 6,000 points")
    drag(page, "train/loss", 0.5, 0.55)
    until(page, "train/loss", "line.range[0] > 2000 && line.range[1] < 4500")
    until(page, "train/grad_norm", "line.range[0] > 2000")  # one view for all
    expect(caption).not_to_contain_text("of", timeout=10_000)  # every point of the range
    assert drawn(page, "train/loss")["count"] > 250
    assert {"from", "to"} <= query(page).keys()
    expect(page.locator("[data-live-words]")).to_have_text("paused by zoom")
    metrics.picture("charts-zoomed")
    card(page, "train/loss").locator(".plot .nsewdrag").first.dblclick()
    until(page, "train/loss", f"line.range[1] > {whole['range'][1] - 100}")
    expect(page.locator("[data-live-words]")).to_have_text("live")
    page.go_back()
    until(page, "train/loss", "line.range[1] < 4500")
    page.go_forward()
    until(page, "train/loss", "line.range[1] > 5500")


def test_the_address_is_the_view_and_a_copied_link_brings_it_back(metrics: Any, visit: Any) -> None:
    page = metrics.page
    page.fill("[data-chart-search]", "loss|grad")
    expect(page.locator("[data-chart]:visible")).to_have_count(3)
    page.check("[data-log-y]")
    until(page, "train/loss", "line.type === 'log'")
    page.select_option("[data-x]", "epoch")
    until(page, "train/loss", "line.range[1] < 12")
    page.select_option("[data-smoothing-by]", "distance")
    page.fill("[data-smoothing-number]", "0.9")
    page.press("[data-smoothing-number]", "Enter")
    page.wait_for_function("() => location.search.includes('sm=0.9')")
    page.locator(".chart-tools summary", has_text="View").click()
    page.check("[data-overlay]")
    page.wait_for_function("() => location.search.includes('over=1')")
    until(page, "train/loss", "line.count > 0")
    expect(page.locator("[data-chart]:visible")).to_have_count(2)
    expect(card(page, "train/loss").locator(".legend")).to_contain_text("val/loss")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[data-copy-view]")
    page.wait_for_timeout(300)
    link = page.evaluate("() => navigator.clipboard.readText()")
    metrics.picture("charts-overlay-epoch-log")
    asked = parse_qs(urlsplit(link).query)
    assert {name: asked[name] for name in ("q", "x", "sm", "by", "log", "over")} == {
        "q": ["loss|grad"],
        "x": ["epoch"],
        "sm": ["0.9"],
        "by": ["distance"],
        "log": ["y"],
        "over": ["1"],
    }
    other = visit(viewport={"width": 1280, "height": 900})
    there = other.sign_in("bob")
    there.goto(link)
    found = drawn(there, "train/loss")
    assert found["type"] == "log" and found["range"][1] < 12
    assert there.input_value("[data-chart-search]") == "loss|grad" and there.input_value("[data-x]") == "epoch"
    assert there.input_value("[data-smoothing-number]") == "0.9" and there.is_checked("[data-overlay]")
    expect(there.locator("[data-chart]:visible")).to_have_count(2)


def test_one_crosshair_over_all_charts_and_the_keys_move_it(metrics: Any) -> None:
    page = metrics.page
    box = card(page, "train/grad_norm").locator(".plot").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 70)
    for key in ("train/loss", "train/grad_norm", "val/loss"):
        expect(card(page, key).locator(".cross")).to_be_visible()
        expect(card(page, key).locator(".tip")).to_be_visible()
    metrics.picture("charts-crosshair")
    page.mouse.move(5, 5)
    expect(card(page, "train/loss").locator(".tip")).to_be_hidden()
    plot = card(page, "val/loss").locator(".plot")
    plot.focus()
    plot.press("End")
    expect(page.locator("[data-announce]")).to_contain_text("5,900: 0.395")
    plot.press("ArrowLeft")
    expect(page.locator("[data-announce]")).to_contain_text("5,800:")
    expect(card(page, "train/loss").locator(".cross")).to_be_visible()
    plot.press("Escape")
    expect(card(page, "val/loss").locator(".tip")).to_be_hidden()
    assert "It falls from" in str(card(page, "train/loss").locator(".plot").get_attribute("aria-label"))


def test_nothing_is_hidden_nan_outliers_and_what_a_log_axis_cannot_show(metrics: Any) -> None:
    page = metrics.page
    expect(card(page, "train/loss").locator("figcaption")).to_contain_text("9 not finite")
    marks = """(key) => document.querySelector(`[data-chart][data-key="${key}"] .plot`).data
      .filter((one) => one.yaxis === 'y2').length"""
    assert page.evaluate(marks, "train/loss") >= 1
    spiked = card(page, "train/grad_norm").locator("figcaption")
    expect(spiked).to_contain_text("points above ▲ in 1 bucket")
    assert drawn(page, "train/grad_norm")["y"][1] < 10
    page.locator(".chart-tools summary", has_text="View").click()
    page.uncheck("[data-outliers]")
    until(page, "train/grad_norm", "line.y[1] >= 500")
    expect(spiked).not_to_contain_text("above")
    page.check("[data-log-y]")
    card(page, "signed").scroll_into_view_if_needed()
    drawn(page, "signed")
    expect(card(page, "signed").locator("figcaption")).to_contain_text("have no place on a log axis")
    card(page, "only_nan").scroll_into_view_if_needed()
    expect(card(page, "only_nan").locator("figcaption")).to_contain_text("60 not finite", timeout=15_000)
    metrics.picture("charts-log-nan")


def test_pins_stand_on_the_overview_and_a_lead_shares_them(metrics: Any, visit: Any, rich: str) -> None:
    page = metrics.page

    def choose(page: Page, key: str, what: str) -> None:
        card(page, key).scroll_into_view_if_needed()
        card(page, key).locator(".chart-menu summary").click()
        with page.expect_response(lambda answer: "/layout/" in answer.url):
            card(page, key).locator(f'[data-do="{what}"]').click()

    choose(page, "val/loss", "pin")
    choose(page, "epoch", "hide")
    expect(card(page, "epoch")).to_be_hidden()
    expect(page.locator("[data-show-hidden]")).to_have_text("1 hidden")
    page.goto(f"/jobs/{rich}/")
    expect(page.locator("[data-chart]")).to_have_count(1)
    expect(card(page, "val/loss")).to_be_visible()
    page.goto(f"/jobs/{rich}/metrics/")
    drawn(page, "train/loss")
    page.locator(".chart-tools summary", has_text="View").click()
    expect(page.locator("[data-share-layout]")).to_have_count(0)  # alice does not lead
    with page.expect_response(lambda answer: "/layout/" in answer.url):
        page.click("[data-reset-layout]")
    expect(card(page, "epoch")).to_be_visible()
    carol = visit(viewport={"width": 1280, "height": 900})
    lead = carol.sign_in("carol")
    lead.goto(f"/jobs/{rich}/metrics/")
    drawn(lead, "train/loss")
    choose(lead, "signed", "pin")
    lead.locator(".chart-tools summary", has_text="View").click()
    with lead.expect_response(lambda answer: "/layout/share/" in answer.url) as shared:
        lead.click("[data-share-layout]")
    assert shared.value.status == 200
    page.goto(f"/jobs/{rich}/")
    expect(card(page, "signed")).to_be_visible()
    expect(page.locator("[data-chart]")).to_have_count(1)
    lead.locator(".chart-tools summary", has_text="View").click()
    with lead.expect_response(lambda answer: "/layout/share/" in answer.url):  # as it was, for the other stories
        lead.click("[data-unshare-layout]")
    page.goto(f"/jobs/{rich}/")
    expect(card(page, "train/loss")).to_be_visible()


def test_points_as_a_table_and_lines_that_can_be_hidden(metrics: Any, rich: str) -> None:
    page = metrics.page
    card(page, "val/loss").locator(".chart-menu summary").click()
    card(page, "val/loss").locator('[data-do="table"]').click()
    rows = card(page, "val/loss").locator(".points tbody tr")
    expect(rows).to_have_count(60)
    expect(rows.first.locator("th")).to_have_text("5900")
    page.goto(f"/jobs/{rich}/metrics/?over=1&q=loss")
    legend = card(page, "train/loss").locator(".legend button")
    expect(legend).to_have_count(2, timeout=15_000)
    legend.nth(1).click()
    expect(legend.nth(1)).to_have_attribute("aria-pressed", "false")
    assert query(page)["hide"] == ["val/loss 1/0"]
    metrics.picture("charts-table-legend")


RETRIED = """
import os, sys, time
import trainhall
attempt = int(os.environ["TRAINHALL_ATTEMPT"])
for step in range(0 if attempt == 1 else 30, 60 if attempt == 1 else 90):
    trainhall.log({"train/loss": attempt + step / 100}, step=step)
time.sleep(1)
sys.exit(1 if attempt == 1 else 0)
"""


def test_the_newest_attempt_wins_where_steps_overlap(visit: Any, portal: Any) -> None:
    job = submit(portal, RETRIED, retries=1)
    portal.wait_for(job, "succeeded", seconds=120)
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto(f"/jobs/{job}/metrics/")
    drawn(page, "train/loss")
    steps = """() => document.querySelector('[data-chart] .plot').data.filter((one) => one.name)
      .map((one) => [one.x[0], one.x.at(-1)])"""
    assert page.evaluate(steps) == [[30, 89], [0, 29]]
    page.locator(".chart-tools summary", has_text="View").click()
    page.check("[data-attempts]")
    page.wait_for_function(f"() => JSON.stringify(({steps})()) === '[[30,89],[0,59]]'", timeout=15_000)
    assert query(page)["attempts"] == ["all"]
    alice.picture("charts-attempts")


LIVE = """
import time
import trainhall
for step in range(3000):
    trainhall.log({"train/loss": 1 / (step + 1)}, step=step)
    time.sleep(0.05)
"""


def test_a_zoom_and_a_pause_survive_what_comes_live(visit: Any, portal: Any) -> None:
    job = submit(portal, LIVE)
    portal.wait_for(job, "running", seconds=60)
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto(f"/jobs/{job}/metrics/")
    drawn(page, "train/loss")
    until(page, "train/loss", "line.count > 60")
    drag(page, "train/loss", 0.2, 0.5)
    expect(page.locator("[data-live-words]")).to_have_text("paused by zoom")
    zoomed = drawn(page, "train/loss")["range"]
    value = card(page, "train/loss").locator(".val")
    before = value.inner_text()
    expect(value).not_to_have_text(before, timeout=15_000)  # points go on coming
    assert drawn(page, "train/loss")["range"] == zoomed
    page.click("[data-live-toggle]")
    until(page, "train/loss", f"line.range[1] > {zoomed[1]} + 20")
    page.click("[data-live-toggle]")
    expect(page.locator("[data-live-words]")).to_have_text("paused")
    count = drawn(page, "train/loss")["count"]
    page.wait_for_timeout(1500)
    assert drawn(page, "train/loss")["count"] == count
    page.click("[data-live-toggle]")
    until(page, "train/loss", f"line.count > {count + 10}")
    portal.rest(f"jobs/{job}/cancel/", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_chart_is_too_wide_for_a_phone(visit: Any, rich: str, scheme: str) -> None:
    phone = visit(viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True)
    page = phone.sign_in("alice")
    for tab in ("", "metrics/"):
        page.goto(f"/jobs/{rich}/{tab}")
        drawn(page, "train/loss")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        card(page, "train/loss").scroll_into_view_if_needed()
        phone.picture(f"phone-{scheme}-charts-{tab.strip('/') or 'overview'}")
    card(page, "train/loss").locator(".plot").tap()
    expect(card(page, "train/loss").locator(".tip")).to_be_visible()


def test_the_theme_changes_what_is_drawn(visit: Any, rich: str) -> None:
    dark = visit(viewport={"width": 1280, "height": 1300}, color_scheme="dark")
    page = dark.sign_in("alice")
    page.goto(f"/jobs/{rich}/metrics/")
    drawn(page, "train/loss")
    colour = "() => document.querySelector('[data-chart][data-key=\"train/loss\"] .plot').data.at(0).line.color ?? ''"
    ticks = (
        "() => document.querySelector('[data-chart][data-key=\"train/loss\"] .plot')._fullLayout.xaxis.tickfont.color"
    )
    before = page.evaluate(ticks)
    dark.picture("charts-dark")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"() => ({ticks})() !== {before!r}", timeout=10_000)
    assert page.evaluate(colour) is not None
    dark.picture("charts-light")


def test_sixty_metrics_are_mounted_as_they_are_looked_at(visit: Any, portal: Any) -> None:
    script = """import trainhall
for step in range(50):
    trainhall.log({f"g{n % 5}/metric-{n}": n + step for n in range(60)}, step=step)
"""
    job = submit(portal, script)
    portal.wait_for(job, "succeeded", seconds=120)
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto(f"/jobs/{job}/metrics/")
    expect(page.locator("[data-chart] .main-svg").first).to_be_visible(timeout=30_000)
    mounted = "() => document.querySelectorAll('.js-plotly-plot').length"
    for _turn in range(8):
        page.mouse.wheel(0, 1200)
        page.wait_for_timeout(250)
    page.wait_for_timeout(500)
    assert 0 < page.evaluate(mounted) <= 24  # twelve, and those on the screen
    page.fill("[data-chart-search]", "metric-(7|33)$")
    expect(page.locator("[data-chart]:visible")).to_have_count(2)
    page.fill("[data-chart-search]", "metric-(")
    expect(page.locator("[data-chart-search]")).to_have_attribute("aria-invalid", "")
    alice.picture("charts-sixty")


def test_escape_takes_a_zoom_back_but_not_while_somebody_types(metrics: Any) -> None:
    page = metrics.page
    drag(page, "train/loss", 0.5, 0.6)
    until(page, "train/loss", "line.range[0] > 2000")
    page.locator("[data-chart-search]").focus()
    page.keyboard.press("Escape")
    page.evaluate(
        "() => document.body.dispatchEvent(new KeyboardEvent('keydown', "
        "{ key: 'Escape', isComposing: true, bubbles: true }))"
    )
    page.wait_for_timeout(1000)
    assert {"from", "to"} <= query(page).keys()
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("Escape")
    until(page, "train/loss", "line.range[0] < 100")
    assert "from" not in query(page)


def test_charts_of_somebody_who_was_signed_out_meanwhile_throw_nothing(visit: Any, portal: Any, rich: str) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    with urlopen(f"http://localhost:{portal.port}/login/") as answer:
        login = answer.read()
    page.route("**/charts/overview/**", lambda route: route.fulfill(body=login, content_type="text/html"))
    with page.expect_response("**/charts/overview/**"):
        page.goto(f"/jobs/{rich}/")
    page.wait_for_timeout(500)
    assert page.locator("[data-charts] form").count() == 0
