"""A whole portal and a real Chromium, once for all stories of a run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.portal.running import Portal

PASSWORD = "stories-need-one"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# where pictures of the pages go, for people to look at
PICTURES = Path(os.environ.get("TRAINHALL_PICTURES", tempfile.gettempdir())) / "trainhall-pictures"


@pytest.fixture(scope="session")
def portal() -> Iterator[Portal]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall stories "))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    (folder / "data").mkdir()
    (folder / "data" / "demo-password").write_text(PASSWORD)
    portal = Portal(folder / "data")
    os.environ["TRAINHALL_DEMO_PASSWORD"] = PASSWORD
    try:
        portal.start()
        yield portal
    finally:
        portal.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_running(portal: Portal) -> Iterator[None]:
    """One person may run only so many jobs: what a story leaves would keep those of the next file waiting."""
    yield
    for job in portal.rest("jobs/?user=alice&status=queued,starting,running&limit=200")["results"]:
        portal.rest(f"jobs/{job['id']}/cancel/", {"now": True})


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """One person's browser; what its console complains about is kept, and must be nothing."""

    def __init__(self, browser: Browser, portal: Portal, **options: Any) -> None:
        self.portal = portal
        self.context = browser.new_context(base_url=f"http://localhost:{portal.port}", **options)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _console(self, message: Any) -> None:
        # a refused form answers 422, and a cut connection is told too: neither is a fault of the page
        if (
            message.type == "error"
            and "Failed to load resource" not in message.text
            and "WebSocket" not in message.text
        ):
            self.complaints.append(message.text)

    def sign_in(self, name: str) -> Page:
        self.page.goto("/login/")
        self.page.fill("input[name=username]", name)
        self.page.fill("input[name=password]", (self.portal.data / "demo-password").read_text().strip())
        self.page.click("main button.primary")
        self.page.wait_for_url("**/")
        return self.page

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=False)

    def end(self) -> None:
        self.context.close()
        assert not self.complaints, self.complaints


@pytest.fixture
def visit(chromium: Browser, portal: Portal) -> Iterator[Any]:
    visits: list[Visit] = []

    def make(**options: Any) -> Visit:
        visits.append(Visit(chromium, portal, **options))
        return visits[-1]

    yield make
    for one in visits:
        one.end()
