"""Charts of a page that stays open: metrics that come later, steps that come again, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# a name that begins late, and steps that are reported a second time and out of order
LATE = """python3 - <<'END'
import time, trainhall
for step in range(400):
    trainhall.log({"loss": 1 / (step + 1)}, step=step)
    if step > 30:
        trainhall.log({"val/late": step}, step=step)
        trainhall.log({"loss": 0.5}, step=step - 20)
    time.sleep(0.1)
END"""
POINTS = """key => {
  const card = document.querySelector(`[data-chart][data-key="${key}"]`);
  const says = card?.querySelector("figcaption .count") ?? card?.querySelector("figcaption");
  const [, count] = says?.textContent.match(/([0-9,]+) points?/) || ["", "0"];
  return Number(count.replace(",", ""));
}"""


@pytest.mark.parametrize("tab", ["", "metrics/"])
def test_a_metric_that_begins_late_appears_and_goes_on_live(visit: Any, portal: Any, tab: str) -> None:
    job = portal.submit(LATE)
    page = visit().sign_in("alice")
    page.goto(f"/jobs/{job}/{tab}")
    late = "() => document.querySelector('[data-chart][data-key=\"val/late\"] .js-plotly-plot')"
    page.wait_for_function(late, timeout=60_000)
    first = page.evaluate(POINTS, "val/late")
    page.wait_for_timeout(3000)
    assert page.evaluate(POINTS, "val/late") > first
    assert page.evaluate(POINTS, "loss") > 30
    if not tab:
        shown = page.locator("[data-headline='val/late']").text_content()
        page.wait_for_timeout(2000)
        assert page.locator("[data-headline='val/late']").text_content() != shown
    portal.rest(f"jobs/{job}/cancel/", {})


REPORT = """
import json, time, uuid
from jobs.models import Job
from metrics import ingest, points
job = Job.objects.get(pk="{job}")
def report(series, **more):
    body = {{"batch": str(uuid.uuid4()), **more, "series": [
        {{"key": key, "step": [step for step, _value in pairs], "value": [value for _step, value in pairs]}}
        for key, pairs in series.items()
    ]}}
    ingest.accept(job.pk, 1, points.read(json.dumps(body).encode(), now=time.time()), namespace_id=job.namespace_id)
"""


def report(portal: Any, job: str, code: str) -> None:
    done = portal.manage("shell", "-c", REPORT.format(job=job) + code)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def quiet(portal: Any) -> Iterator[str]:
    """A job that runs and tells nothing by itself."""
    job = portal.submit("sleep 600")
    portal.wait_for(job, "running")
    yield job
    portal.rest(f"jobs/{job}/cancel/", {})


def test_of_several_ranks_the_lowest_stands_in_the_card_of_facts(visit: Any, portal: Any, quiet: str) -> None:
    page = visit().sign_in("alice")
    page.goto(f"/jobs/{quiet}/")
    report(portal, quiet, 'report({"loss": [(1, 1.5)]}, rank=0)')
    fact = page.locator("[data-headline='loss']")
    expect(fact).to_have_text("1.5", timeout=20_000)
    page.evaluate(
        """() => {
          window.told = [];
          const place = document.querySelector("[data-headline='loss']").closest("dl");
          new MutationObserver(() => window.told.push(place.querySelector("[data-headline='loss']").textContent))
            .observe(place, { childList: true, characterData: true, subtree: true });
        }"""
    )
    code = 'report({"loss": [(2, 7.25)]}, rank=1)\ntime.sleep(1.5)\nreport({"loss": [(3, 2.5)]}, rank=0)'
    report(portal, quiet, code)
    expect(fact).to_have_text("2.5", timeout=20_000)
    assert "2.5" in page.evaluate("window.told") and "7.25" not in page.evaluate("window.told")


def test_a_touch_that_becomes_a_scroll_lets_go_of_the_chart(visit: Any, portal: Any, quiet: str) -> None:
    report(portal, quiet, 'report({"loss": [(step, 1.0) for step in range(5)]})')
    page = visit().sign_in("alice")
    page.goto(f"/jobs/{quiet}/metrics/")
    page.wait_for_selector("[data-chart][data-key=loss] .js-plotly-plot .main-svg", timeout=30_000)
    page.wait_for_function(f"() => ({POINTS})('loss') === 5", timeout=30_000)
    # as a browser tells of a finger that began to scroll the page
    page.evaluate(
        """() => {
          const plot = document.querySelector("[data-chart][data-key=loss] .plot");
          const touch = { bubbles: true, pointerType: "touch" };
          plot.dispatchEvent(new PointerEvent("pointerdown", touch));
          plot.dispatchEvent(new PointerEvent("pointercancel", touch));
        }"""
    )
    report(portal, quiet, 'report({"loss": [(9, 2.0)]})')
    page.wait_for_function(f"() => ({POINTS})('loss') === 6", timeout=20_000)


def test_epochs_go_on_live_and_are_read_anew(visit: Any, portal: Any, quiet: str) -> None:
    report(portal, quiet, 'report({"epoch": [(0, 0), (10, 1)], "loss": [(0, 4.0), (10, 3.0)]})')
    page = visit().sign_in("alice")
    page.goto(f"/jobs/{quiet}/metrics/?x=epoch")
    along = """(wanted) => {
      const plot = document.querySelector("[data-chart][data-key=loss] .plot");
      const line = plot.data?.filter((one) => one.mode !== "markers" && one.name).at(-1);
      return JSON.stringify(line?.x) === wanted;
    }"""
    page.wait_for_function(along, arg="[0,1]", timeout=30_000)
    report(portal, quiet, 'report({"epoch": [(20, 4)], "loss": [(20, 2.0)]})')
    page.wait_for_function(along, arg="[0,1,4]", timeout=20_000)
    report(
        portal, quiet, 'report({"epoch": [(15, 3.5)], "loss": [(15, 2.5)]})'
    )  # late: of it the page has only the loss
    page.wait_for_function(along, arg="[0,1,2.5,4]", timeout=20_000)
    page.locator("[data-x]").select_option("step")
    page.wait_for_function(along, arg="[0,10,15,20]", timeout=20_000)
    page.locator("[data-x]").select_option("epoch")
    page.wait_for_function(along, arg="[0,1,3.5,4]", timeout=20_000)
