"""Charts of a page that stays open: metrics that come later, steps that come again, and what stands beside them."""

from __future__ import annotations

from typing import Any

import pytest

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
  const [, count] = card?.textContent.match(/([0-9,]+) points?/) || ["", "0"];
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
