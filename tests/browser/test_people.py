"""An admin gives a role by hand with an end and takes it away: asked first, told what it does, and the person's page hears."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import serious

pytestmark = pytest.mark.browser
ACCESS = "/admin/access/"


def test_a_guest_is_let_in_until_a_day_and_out_again(visit: Any, portal: Any) -> None:
    job = portal.submit("sleep 300")
    stranger, desk = visit(), visit()
    guest, admin = stranger.sign_in("dave"), desk.sign_in("admin")
    assert guest.goto(f"/jobs/{job}/").status == 404

    admin.goto(ACCESS)
    admin.get_by_placeholder("Name, user name or mail").fill("dave")
    admin.keyboard.press("Enter")
    expect(admin.locator(".held li")).to_have_count(2)  # his own, and speech
    admin.get_by_label("Project", exact=True).select_option("vision")
    admin.locator("#give-role").select_option("viewer")
    admin.get_by_label("Last day (UTC)").fill("2100-12-31")
    admin.get_by_role("button", name="Give the role").click()
    expect(admin.get_by_text("dave is viewer of vision from now on.")).to_be_visible()
    row = admin.locator(".held li", has_text="vision")
    expect(row).to_contain_text("by hand, until 31 Dec 2100")
    assert not serious(admin)
    desk.picture("people-desktop")

    guest.goto("/me/namespaces/")
    expect(guest.get_by_text("by hand, until 31 Dec 2100")).to_be_visible()
    guest.goto(f"/jobs/{job}/")
    expect(guest.get_by_role("heading", level=1)).to_be_visible()
    expect(guest.locator("[data-live], .live").first).to_contain_text("live")

    row.get_by_role("button", name="Take away").click()
    asked = admin.locator("#confirm")
    expect(asked).to_contain_text("Take vision away from dave?")
    desk.picture("people-confirm")
    asked.get_by_role("button", name="Go back").click()
    expect(row).to_be_visible()
    row.get_by_role("button", name="Take away").click()
    asked.get_by_role("button", name="Take away").click()
    expect(admin.get_by_text("the role by hand of dave in vision is gone")).to_be_visible()
    told = guest.get_by_role("group", name="Notices")
    expect(told).to_contain_text("This job is not yours to see any more.", timeout=15_000)
    assert guest.goto(f"/jobs/{job}/").status == 404


def test_people_fit_on_a_phone(visit: Any) -> None:
    phone = visit(viewport={"width": 360, "height": 800}, color_scheme="dark")
    page = phone.sign_in("admin")
    for wanted in ("alice", "a", "nobody-here"):
        page.goto(f"{ACCESS}?person={wanted}")
        assert page.evaluate("document.documentElement.scrollWidth") == 360, wanted
        phone.picture(f"people-phone-{wanted}")
