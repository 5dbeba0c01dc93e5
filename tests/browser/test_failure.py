"""Failed jobs in a real browser: the panel comes by itself, its line is one click away, its change one more (UX-E1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_story import status

pytestmark = pytest.mark.browser

OOM = """import sys, time
import trainhall
print("epoch 1 of 90, batch", sys.argv[1], flush=True)
for step in range(30):
    trainhall.log({"train/loss": 1 / (step + 1)}, step=step)
    trainhall.progress(step, 100)
    time.sleep(0.1)
raise RuntimeError(
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.10 GiB is free."
)
"""
HOSTILE = """raise ValueError("<script>document.title='owned'</script><img src=x onerror=alert(1)> %(kind)s { 1 }")
"""


def submit(portal: Any, command: str, *, script: str = "", **more: Any) -> str:
    document = {"namespace": "vision", "runtime": "numpy", "name": "fails", "command": command, **more}
    if script:
        document["code"] = {"files": {"train.py": script}}
    return str(portal.rest("jobs/", document)["id"])


def test_the_panel_comes_by_itself_and_leads_to_the_line_and_to_a_smaller_batch(visit: Any, portal: Any) -> None:
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    job = submit(portal, "python train.py {{batch_size}}", script=OOM, parameters={"batch_size": 1024, "lr": 0.1})
    page.goto(f"/jobs/{job}/")
    status(page, "running")
    panel = page.locator(".cause")
    expect(panel).to_have_count(0)
    status(page, "failed", seconds=60)
    expect(panel).to_contain_text("Out of GPU memory: tried to get 2.50 GiB, 1.10 GiB of 79.15 GiB was free.")
    expect(panel).to_contain_text("yours to fix")
    expect(panel).to_contain_text("Lower batch_size (now 1024), for example to 512.")
    expect(panel).to_contain_text("step 29")
    page.wait_for_timeout(500)
    alice.picture("failure-1280-light")
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_timeout(500)
    alice.picture("failure-1280-dark")
    panel.get_by_role("link", name="Go to the line").click()
    page.wait_for_url(re.compile(r"/logs/\?worker=worker-0#L\d+$"))
    expect(page.locator("[data-log]")).to_contain_text("CUDA out of memory")
    page.go_back()
    panel.get_by_role("link", name="Clone with batch_size 512").click()
    page.wait_for_url(re.compile(r"/jobs/new/\?from="))
    values = page.locator("input[name=param_value]").evaluate_all("all => all.map(one => one.value)")
    assert "512" in values
    assert "1024" not in values


def test_a_hostile_message_is_text_and_nothing_is_cut_on_a_phone(visit: Any, portal: Any) -> None:
    alice = visit(viewport={"width": 360, "height": 780}, is_mobile=True)
    page = alice.sign_in("alice")
    job = submit(portal, "python train.py", script=HOSTILE)
    portal.wait_for(job, "failed", seconds=60)
    page.goto(f"/jobs/{job}/")
    expect(page.locator(".cause h2")).to_contain_text("<script>document.title='owned'</script><img src=x")
    expect(page.locator(".cause h2")).to_contain_text("%(kind)s")
    assert page.locator(".cause script, .cause img").count() == 0
    assert page.title() != "owned"
    page.wait_for_timeout(500)
    alice.picture("failure-360-hostile")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".cause").scroll_into_view_if_needed()
    alice.picture("failure-360-panel")


def test_each_attempt_tells_its_own_cause(visit: Any, portal: Any) -> None:
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    job = submit(portal, "cat /data/labels.txt", retries=1)
    portal.wait_for(job, "failed", seconds=90)
    page.goto(f"/jobs/{job}/events/")
    expect(page.locator(".attempt-cause")).to_have_count(2)
    expect(page.locator(".attempt-cause").first).to_contain_text("/data/labels.txt is not there")
    alice.picture("failure-events")
    page.goto(f"/jobs/{job}/workers/")
    expect(page.locator(".attempt-cause")).to_have_count(2)
    alice.picture("failure-attempts")


def test_a_success_that_left_no_trace_is_asked_about(visit: Any, portal: Any) -> None:
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    job = submit(portal, "true")
    portal.wait_for(job, "succeeded", seconds=60)
    page.goto(f"/jobs/{job}/")
    expect(page.locator(".cause")).to_contain_text("Was there anything to do?")
    alice.picture("failure-did-nothing")
