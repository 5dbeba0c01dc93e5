"""The shell in the browser, on the local cluster, under the portal's own Content-Security-Policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
SCREEN = ".xterm-rows"


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    expect.set_options(timeout=20_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture(scope="module")
def job(portal: Any) -> str:
    """Two workers of alice's that wait."""
    document = {"namespace": "vision", "runtime": "shell", "command": "sleep 900", "stop_grace": "1s"}
    found = str(portal.rest("jobs/", document | {"resources": {"workers": 2}})["id"])
    portal.wait_for(found, "running", seconds=60)
    return found


def opened(page: Page, job: str, worker: str = "worker-0") -> None:
    page.goto(f"/jobs/{job}/shell/?worker={worker}")
    page.get_by_role("button", name="Open a shell").click()
    expect(page.locator("[data-shell-said]")).to_have_text(f"Connected to {worker}.")


def typed(page: Page, text: str) -> None:
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_alice_looks_into_her_job(portal: Any, visit: Any, job: str) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    page.goto(f"/jobs/{job}/workers/")
    page.get_by_role("link", name="Shell in worker-1").click()
    page.get_by_role("button", name="Open a shell").click()
    screen = page.locator(SCREEN)
    expect(page.locator("[data-shell-said]")).to_have_text("Connected to worker-1.")
    typed(page, "echo rank=$JOB_COMPLETION_INDEX job=$TRAINHALL_JOB_ID; pwd; test -t 0 && echo a-terminal")
    expect(screen).to_contain_text(f"rank=1 job={job}")
    expect(screen).to_contain_text("a-terminal")

    # colours come through style sheets that the policy allows; the console's complaints fail the story at its end
    typed(page, "printf '\\033[1;31mred\\033[0m \\033[38;2;40;90;250mblue\\033[0m \\033[44mon blue\\033[0m\\n'")
    expect(screen.locator("span", has_text="red").last).to_have_css("font-weight", "700")
    blue = screen.get_by_text("blue", exact=True).last
    assert blue.evaluate("one => getComputedStyle(one).color") != screen.evaluate("one => getComputedStyle(one).color")
    alice.picture("shell")

    before = page.evaluate("document.querySelector('.xterm-rows').children.length")
    page.set_viewport_size({"width": 1500, "height": 1000})
    page.wait_for_function(f"() => document.querySelector('.xterm-rows').children.length > {before}")
    rows = page.evaluate("document.querySelector('.xterm-rows').children.length")
    typed(page, "clear; stty size")
    expect(screen).to_contain_text(f"{rows} ")

    # Tab completes and does not leave; the keyboard has another way out
    page.keyboard.type("echo tr")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.xterm-helper-textarea')")
    page.keyboard.press("Control+Shift+L")
    expect(page.get_by_role("button", name="Close the shell")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[data-shell-said]")).to_have_text("The shell has ended.")
    page.get_by_role("button", name="Open again").click()
    expect(page.locator("[data-shell-said]")).to_have_text("Connected to worker-1.")
    typed(page, "exit")
    expect(page.locator("[data-shell-said]")).to_have_text("The shell has ended.")

    _status, trail = portal.visitor("admin").ask("GET", "/api/v1/audit/")
    rows = [row for row in json.loads(trail)["results"] if row["action"].startswith("shell.") and row["target"] == job]
    assert [row["action"] for row in rows] == ["shell.close", "shell.open"] * 2
    assert [row["after"]["why"] for row in rows[::2]] == ["exited", "left"]
    assert {row["after"]["worker"] for row in rows} == {"worker-1"}
    assert {row["actor"] for row in rows} == {"alice"}
    assert rows[0]["address"] in ("127.0.0.1", "::1")
    assert "a-terminal" not in trail


def test_a_flood_is_interrupted_at_once(visit: Any, job: str) -> None:
    page = visit().sign_in("alice")
    opened(page, job)
    typed(page, "yes a-flood")
    expect(page.locator(SCREEN)).to_contain_text("a-flood")
    page.wait_for_timeout(2000)
    page.keyboard.press("Control+C")
    typed(page, "clear; echo after''wards")
    expect(page.locator(SCREEN)).to_contain_text("afterwards")


def test_a_long_paste_arrives_whole(visit: Any, job: str) -> None:
    page = visit().sign_in("alice")
    opened(page, job)
    typed(page, "stty -echo; cat >/tmp/pasted-here; wc -l </tmp/pasted-here; rm /tmp/pasted-here")
    page.wait_for_timeout(500)
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.setData("text/plain", "0123456789012345678901234567890123456789\\n".repeat(12345));
          const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
          document.querySelector(".xterm-helper-textarea").dispatchEvent(paste);
        }"""
    )
    page.keyboard.press("Enter")
    page.keyboard.press("Control+D")
    expect(page.locator(SCREEN)).to_contain_text("12346")


def test_on_a_phone_in_the_dark(visit: Any, job: str) -> None:
    phone = visit(viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True, is_mobile=True)
    page = phone.sign_in("alice")
    opened(page, job)
    typed(page, "echo on a phone; ls /")
    expect(page.locator(SCREEN)).to_contain_text("on a phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Ctrl+C").click()
    expect(page.locator(SCREEN)).to_contain_text("^C")
    page.locator("[data-shell]").scroll_into_view_if_needed()
    phone.picture("shell-phone-dark")


def test_others_have_no_shell(visit: Any, job: str) -> None:
    for who, status in (("bob", 403), ("carol", 403), ("dave", 404)):
        page = visit().sign_in(who)
        answer = page.goto(f"/jobs/{job}/shell/")
        assert answer is not None
        assert answer.status == status, who
        if status == 403:
            page.goto(f"/jobs/{job}/")
            expect(page.locator("nav.tabs").get_by_role("link", name="Shell")).to_have_count(0)


def test_the_fifth_shell_is_refused(visit: Any, job: str) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    for _one in range(4):
        opened(alice.context.new_page(), job)
    page.goto(f"/jobs/{job}/shell/")
    page.get_by_role("button", name="Open a shell").click()
    expect(page.locator("[data-shell-said]")).to_have_text(
        "You have 4 shells open, and may have no more. Close one of them first."
    )


def test_the_job_ends_and_its_shell_with_it(portal: Any, visit: Any) -> None:
    short = str(portal.submit("sleep 900"))
    portal.wait_for(short, "running", seconds=60)
    page = visit().sign_in("alice")
    opened(page, short)
    portal.rest(f"jobs/{short}/cancel/", {"now": True})
    expect(page.locator("[data-shell-said]")).to_have_text(
        re.compile(r"^(The shell has ended: The|Closed: the) worker has ended\.$")
    )
