"""The second door in a real browser, under our CSP: through the provider's own page and back to where one wanted to go."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Visit
from tests.openid import CLIENT, SECRET, Op
from tests.portal.running import Portal

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def second_door(running_op: Op) -> Iterator[Portal]:
    """A portal of its own, for what it knows of the provider it knows from its start on."""
    folder = Path(tempfile.mkdtemp(prefix="trainhall-oidc-"))
    folder.chmod(0o711)
    (folder / "secret").write_text(SECRET)
    portal = Portal(folder / "data")
    told = {
        "OIDC_ISSUER": running_op.issuer,
        "OIDC_CLIENT_ID": CLIENT,
        "OIDC_CLIENT_SECRET_FILE": str(folder / "secret"),
        "OIDC_BUTTON": "Sign in with the Lab ID",
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in told.items():
            patched.setenv(name, value)
        try:
            portal.start()
            yield portal
        finally:
            portal.kill_all()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def op(running_op: Op) -> Op:
    running_op.behave()
    running_op.asks = True
    return running_op


def test_through_the_provider_and_back(chromium: Browser, second_door: Portal, op: Op) -> None:
    one = Visit(chromium, second_door, viewport={"width": 1280, "height": 800})
    page = one.page
    page.goto("/jobs/?status=failed")
    page.wait_for_url("**/login/?next=**")
    one.picture("login-openid")
    _by_keyboard(page)
    page.wait_for_url(f"{op.issuer}/authorize?**")
    page.get_by_role("button", name="Alice Liddell").click()
    page.wait_for_url("**/jobs/?status=failed")
    expect(page.locator("body")).to_contain_text(re.compile("alice-x[0-9a-f]{10}"))  # not the alice who is here already
    page.go_back()  # over the provider's page, never into a used-up answer
    assert "/login/oidc/" not in page.url
    page.goto("/me/namespaces/")
    expect(page.locator("main")).to_contain_text(re.compile("alice-x[0-9a-f]{10}"))
    one.end()


def _by_keyboard(page: Page) -> None:
    button = page.get_by_role("button", name="Sign in with the Lab ID")
    for _n in range(12):
        page.keyboard.press("Tab")
        if button.evaluate("(it) => it === document.activeElement"):
            break
    expect(button).to_be_focused()
    page.keyboard.press("Enter")


def test_who_cancels_there_is_told_here_and_may_try_again(chromium: Browser, second_door: Portal, op: Op) -> None:
    one = Visit(chromium, second_door, viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = one.page
    page.goto("/login/")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Sign in with the Lab ID").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("did not sign you in")
    one.picture("login-openid-cancelled")
    page.get_by_role("button", name="Sign in with the Lab ID").click()
    page.get_by_role("button", name="Bob").click()
    page.wait_for_url("**/me/namespaces/")
    one.end()


def test_without_its_own_going_on_the_page_on_the_way_has_a_link(
    chromium: Browser, second_door: Portal, op: Op
) -> None:
    """Some browsers are told not to follow a refresh."""
    one = Visit(chromium, second_door, viewport={"width": 1280, "height": 800})
    page = one.page

    def stay(route: Any) -> None:
        answer = route.fetch()
        kept = {name: value for name, value in answer.headers.items() if name != "refresh"}
        route.fulfill(response=answer, headers=kept)

    page.route(re.compile("/login/oidc/$"), stay)
    page.goto("/login/")
    page.get_by_role("button", name="Sign in with the Lab ID").click()
    expect(page.locator("main")).to_contain_text(op.issuer.removeprefix("http://"))
    one.picture("to-provider")
    page.get_by_role("link", name="Go on").click()
    page.get_by_role("button", name="Alice Liddell").click()
    page.wait_for_url("**/me/namespaces/")
    one.end()
