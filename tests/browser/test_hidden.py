"""A tab nobody looks at: its title still says how the job stands, and what it missed comes when it is looked at (UX-B12)."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.browser

# as the browser does it for a tab in the background
HIDE = """() => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => window.isHidden });
  window.isHidden = true;
  document.dispatchEvent(new Event("visibilitychange"));
}"""
SHOW = """() => { window.isHidden = false; document.dispatchEvent(new Event("visibilitychange")); }"""
TICKS = "python3 -c \"import time\nfor n in range(400):\n print('tick', n, flush=True)\n time.sleep(0.2)\""
LINES = "document.querySelectorAll('[data-log=full] .line').length"


def test_the_title_of_a_hidden_tab_goes_on(visit: Any, portal: Any) -> None:
    job = portal.submit(TICKS)
    page = visit().sign_in("alice")
    page.goto(f"/jobs/{job}/logs/")
    page.wait_for_function(f"() => document.title.startsWith('▶') && {LINES} > 3")
    page.clock.install()  # from here on this page's own time: half a minute passes at once
    page.evaluate(HIDE)
    page.clock.fast_forward(31_000)
    page.wait_for_timeout(500)
    before = page.evaluate(LINES)
    page.wait_for_timeout(1500)
    assert page.evaluate(LINES) == before, "nobody looks, so no lines are sent"
    page.request.post(
        f"/api/v1/jobs/{job}/cancel/",
        headers={"X-CSRFToken": page.evaluate("document.querySelector('[name=csrfmiddlewaretoken]').value")},
        data={},
    )
    page.wait_for_function("() => document.title.startsWith('■')", timeout=40_000, polling=200)
    page.evaluate(SHOW)
    page.wait_for_function(f"() => {LINES} > {before}", polling=200)
