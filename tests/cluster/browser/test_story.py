"""The main job in a browser with real containers behind it: at every step the page says what `kubectl` says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from deploy.devcluster import __main__ as program
from tests.browser.test_story import fill_form, last_step, status, submit
from tests.cluster.story import ClusterPortal
from tests.portal.running import until

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

TICKING = """import os, time, trainhall
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], flush=True)
for step in range({steps}):
    trainhall.log({{"train/loss": 1 / (step + 1)}}, step=step)
    trainhall.progress(step, {steps})
    print("line", step, flush=True)
    time.sleep(0.1)
"""
SMALL = {"cpus": "0.1", "memory": "128Mi"}


def begin(page: Page, name: str, *, steps: int, **more: str) -> str:
    fill_form(page, name=name, script=TICKING.format(steps=steps), command="python3 train.py", **(SMALL | more))
    expect(page.locator("[data-forecast-result]")).to_contain_text("Fits now", timeout=10_000)
    return submit(page)


def phases(portal: ClusterPortal, job: str) -> list[tuple[str, str]]:
    pods = portal.pods_of(job)
    return sorted((pod["spec"].get("nodeName", ""), pod["status"]["phase"]) for pod in pods)


def shown(page: Page) -> list[tuple[str, str]]:
    """Node and phase of each worker, as the page has them."""
    rows = page.locator("[data-worker-row]").all()
    cells = [[row.locator(f"[data-bind={name}]").inner_text() for name in ("node", "phase")] for row in rows]
    return sorted((node, phase) for node, phase in cells)


def test_two_ranks_are_watched_from_the_form_to_their_files(visit: Any, portal: ClusterPortal) -> None:
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    job = begin(page, "two-ranks", steps=200, workers="2", gpus="1")
    objects = ("get", "jobs", "-A", "-l", f"trainhall.io/job={job}")
    (made,) = until(lambda: portal.kubectl(*objects)["items"], seconds=10, what="its Job is there")
    assert made["metadata"]["namespace"] == "p-vision" and made["spec"]["parallelism"] == 2
    status(page, "running", seconds=60)
    until(lambda: {phase for _node, phase in phases(portal, job)} == {"Running"}, seconds=20, what="both pods run")
    expect(page.locator("[data-live]").first).to_contain_text("live, as of", timeout=8000)
    chart = page.locator('[data-chart][data-key="train/loss"]')
    expect(chart.locator(".plot svg.main-svg").first).to_be_visible(timeout=30_000)
    alice.picture("cluster-job-running")

    page.goto(f"/jobs/{job}/workers/")
    expect(page.locator("[data-worker-row]")).to_have_count(2)
    assert shown(page) == phases(portal, job)
    alice.picture("cluster-workers")

    page.goto(f"/jobs/{job}/")
    status(page, "succeeded", seconds=90)
    stored = page.request.get(f"/api/v1/jobs/{job}/series/").json()["series"]
    assert {(one["rank"], one["count"]) for one in stored if one["key"] == "train/loss"} == {(0, 200), (1, 200)}
    for rank in (0, 1):
        lines = portal.lines(job, f"worker-{rank}")
        assert [line for line in lines if line.startswith("line")] == [f"line {step}" for step in range(200)]
    until(lambda: not portal.objects_of(job), seconds=30, what="kubectl has nothing of it any more")
    alice.picture("cluster-job-succeeded")


def test_a_stop_is_seen_on_both_sides(visit: Any, portal: ClusterPortal) -> None:
    page = visit().sign_in("alice")
    job = begin(page, "stopped", steps=6000)
    status(page, "running", seconds=60)
    assert [phase for _node, phase in phases(portal, job)] == ["Running"]
    page.click("button:has-text('Stop')")
    page.click("dialog[open] [data-confirm-yes]")
    status(page, "cancelled", seconds=60)
    assert not phases(portal, job), "cancelled is said when no pod is left"


def test_the_api_server_dies_while_one_watches(visit: Any, portal: ClusterPortal) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    job = begin(page, "goes-on", steps=300)
    status(page, "running", seconds=60)
    page.goto(f"/jobs/{job}/logs/")
    expect(page.locator("[data-log] .line").nth(5)).to_be_visible(timeout=15_000)
    with portal.without("apiserver"):
        # points come over the portal's own door, and lines when the kubelet can be asked again
        before = portal.rest(f"jobs/{job}/")["points_seq"]
        until(lambda: portal.rest(f"jobs/{job}/")["points_seq"] > before + 20, seconds=20, what="points go on")
        other = visit().sign_in("bob")
        other.goto("/status/")
        expect(other.locator("main")).to_contain_text(re.compile(r"gpu|dev|cluster"), timeout=5000)
        alice.picture("cluster-without-api-server")
    program.up(portal.cluster)
    page.goto(f"/jobs/{job}/")
    status(page, "succeeded", seconds=120)
    assert [line for line in portal.lines(job) if line.startswith("line")] == [f"line {step}" for step in range(300)]
    page.goto(f"/jobs/{job}/logs/")
    until(lambda: last_step(page) == 299, seconds=15, what="the page has the last line")


def test_dave_sees_nothing_of_it(visit: Any, portal: ClusterPortal) -> None:
    job = portal.run("print(1)")
    portal.over(job, "succeeded")
    page = visit().sign_in("dave")
    for path in ("", "logs/", "workers/", "files/", "shell/"):
        answer = page.goto(f"/jobs/{job}/{path}")
        assert answer is not None and answer.status == 404, path
    page.goto("/jobs/?namespace=vision")
    assert job not in page.content()
