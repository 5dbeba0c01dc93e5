"""Charts of long jobs: a page of 60 metrics, an hour of updates, a series of a million points, twenty of them.

The bars: first charts drawn 1.5 s after the click; 60 MB of heap after the hour; 80 ms for the million with exact least,
largest and last; 2 s for twenty millions.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
import urllib.request
import uuid
from typing import Any
from urllib.parse import urlencode

import numpy as np
from place import Portal, Table, cookie_of, portal, quiet
from playwright.sync_api import Browser, Page, sync_playwright

PAGE_BAR, HEAP_BAR, MILLION_BAR, TWENTY_BAR = 1500.0, 60.0, 80.0, 2000.0
METRICS, STEPS, LINES = 60, 20_000, 50_000
HOUR, A_BATCH = 3600, 60  # points of each metric; of one batch
MILLION, CURVES = 1_000_000, 20
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
# when the last of the charts that are seen without scrolling is drawn, in ms since the navigation
DRAWN = """() => new Promise((resolve) => {
  const look = () => {
    const seen = [...document.querySelectorAll('[data-chart]')].filter((card) => {
      const box = card.getBoundingClientRect();
      return box.height && box.top < innerHeight && box.bottom > 0;
    });
    const drawn = seen.filter((card) => card.querySelector('.scatterlayer .lines path'));
    if (seen.length && drawn.length === seen.length) resolve([performance.now(), seen.length]);
    else requestAnimationFrame(look);
  };
  look();
})"""


def filled(job: str, keys: list[str], steps: int) -> dict[str, Any]:
    """Sealed series of a job, as if its attempt had sent them long ago; what they hold by key."""
    from jobs.models import JobFeed
    from metrics import chunks, coarse
    from metrics.models import Chunk, MetricKey

    random = np.random.default_rng(1)
    held = {}
    for key in keys:
        value = np.exp(-np.arange(steps) / (steps / 3)) + random.normal(size=steps) * 0.02
        value[steps // 3] = 7.5  # a spike of one step
        held[key] = value
        run = chunks.Run(np.arange(steps), 1.7e9 + np.arange(steps) * 0.05 + random.random(steps) * 0.01, value)
        Chunk.objects.bulk_create(
            Chunk(
                job_id=job,
                attempt=1,
                rank=0,
                key=key,
                group=key.split("/")[0],
                seq=0,
                open=False,
                body=chunks.compress(part),
                coarse=coarse.of_chunk(part).pack(),
                **chunks.measures(part),
            )
            for part in chunks.split(run, newest=True)
        )
    MetricKey.objects.bulk_create(MetricKey(job_id=job, key=key) for key in keys)
    JobFeed.objects.filter(pk=job).update(key_count=len(keys))
    return held


def said(job: str) -> None:
    """Lines of a job's worker, stored as the watcher stores them."""
    from jobs.cluster.port import RawLine
    from jobs.logs.lines import store_lines
    from jobs.models import Attempt, Worker

    attempt = Attempt.objects.select_related("job").get(job_id=job)
    worker = Worker.objects.get(attempt=attempt)
    for first in range(worker.log_number + 1, LINES, 500):
        block = range(first, first + 500)
        store_lines(attempt, worker, [RawLine(number, 1.7e9 + number, f"step {number} loss=0.5") for number in block])


def get(place: Portal, path: str) -> tuple[float, bytes]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{place.port}{path}", headers={"Authorization": f"Bearer {place.token}"}
    )
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        body = answer.read()
    return (time.perf_counter() - began) * 1000, body


def send(place: Portal, job: str, keys: list[str], first: int) -> None:
    """A batch of the attempt: the next points of every key."""
    from jobs.credentials import attempt_token

    steps = list(range(first, first + A_BATCH))
    body = {
        "batch": str(uuid.uuid4()),
        "series": [{"key": key, "step": steps, "value": [1 / (step + 1) for step in steps]} for key in keys],
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{place.port}/api/v1/jobs/{job}/ingest/",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {attempt_token(job, 1)}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def names(count: int) -> list[str]:
    groups = ("train", "val", "optimizer")
    return [f"{groups[number % 3]}/metric-{number:02}" for number in range(count)]


def page_of(browser: Browser, place: Portal, cookie: str) -> Page:
    name, value = cookie.split("=", 1)
    context = browser.new_context(base_url=f"http://127.0.0.1:{place.port}", viewport={"width": 1280, "height": 900})
    context.add_cookies([{"name": name, "value": value, "url": f"http://127.0.0.1:{place.port}"}])
    return context.new_page()


def bench_page(table: Table, place: Portal, browser: Browser, cookie: str) -> None:
    job = place.submit("sleep 900")
    place.wait_for(job, "running")
    filled(job, names(METRICS), STEPS)
    said(job)
    quiet(3)
    for tab, path in (("overview", f"/jobs/{job}/"), ("Metrics tab", f"/jobs/{job}/metrics/")):
        cold, warm = [], []
        for _visit in range(5):
            page = page_of(browser, place, cookie)
            for found in (cold, warm):
                page.goto(path, wait_until="commit")
                drawn, seen = page.evaluate(DRAWN)
                found.append(drawn)
            page.context.close()
        beside = f"{seen} charts of {METRICS} x {STEPS:,} steps, {LINES:,} lines"
        table.line(f"{tab}: seen charts drawn, again", statistics.median(warm), PAGE_BAR, beside=beside)
        table.line(f"{tab}: seen charts drawn, empty cache", statistics.median(cold), PAGE_BAR)
    place.rest(f"jobs/{job}/cancel/", {})


def bench_hour(table: Table, place: Portal, browser: Browser, cookie: str) -> None:
    job = place.submit("sleep 900")
    place.wait_for(job, "running")
    keys = names(METRICS)
    send(place, job, keys, 0)
    page = page_of(browser, place, cookie)
    page.goto(f"/jobs/{job}/metrics/", wait_until="commit")
    page.evaluate(DRAWN)
    last = "() => document.querySelector('[data-chart] .plot').data.filter((one) => one.name).at(-1).x.at(-1)"
    for first in range(A_BATCH, HOUR, A_BATCH):
        send(place, job, keys, first)
        time.sleep(0.15)
    page.wait_for_function(f"() => ({last})() === {HOUR - 1}", timeout=60_000)
    tools = page.context.new_cdp_session(page)
    tools.send("HeapProfiler.collectGarbage")
    used = tools.send("Runtime.getHeapUsage")["usedSize"] / 2**20
    beside = f"{METRICS} metrics x {HOUR:,} points by the socket, after collecting garbage"
    table.line("heap of the page after the hour", used, HEAP_BAR, unit="MB", beside=beside)
    page.context.close()
    place.rest(f"jobs/{job}/cancel/", {})


def bench_million(table: Table, place: Portal) -> None:
    job = place.submit("true")
    place.wait_for(job, "succeeded")
    keys = names(CURVES)
    held = filled(job, keys, MILLION)
    quiet(3)
    took = []
    for key in keys:  # each once: what is measured has never been asked for
        milliseconds, body = get(place, f"/api/v1/jobs/{job}/series/?{urlencode({'key': key})}")
        took.append(milliseconds)
        [series] = json.loads(body)["series"]
        value = held[key]
        if (min(series["min"]), max(series["max"]), series["last"][-1]) != (value.min(), value.max(), value[-1]):
            raise RuntimeError(f"{key} is not exact")
        if sum(series["count"]) != MILLION or len(series["step"]) > 2000:
            raise RuntimeError(f"{key}: {sum(series['count'])} points in {len(series['step'])} buckets")
    table.line(
        "series of 1,000,000 points, its first answer",
        statistics.median(took),
        MILLION_BAR,
        beside=f"slowest {max(took):.0f} ms",
    )
    smooth = [get(place, f"/api/v1/jobs/{job}/series/?{urlencode({'key': key, 'smooth': 0.9})}")[0] for key in keys[:5]]
    print(f"  {'the same, smoothed point by point':46} {statistics.median(smooth):>9.0f} ms", flush=True)
    many = urlencode([("key", key) for key in keys] + [("buckets", "800")])
    milliseconds, _body = get(place, f"/api/v1/jobs/{job}/series/?{many}")
    table.line(f"{CURVES} such series at once", milliseconds, TWENTY_BAR)


def main() -> int:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the loop of playwright runs in this thread, and is no server's
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with portal() as place, sync_playwright() as playwright:
        cookie = cookie_of("alice")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        table = Table("Charts")
        bench_page(table, place, browser, cookie)
        bench_hour(table, place, browser, cookie)
        bench_million(table, place)
        browser.close()
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
