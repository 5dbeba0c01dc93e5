"""Volumes in a real browser: an admin offers claims, and whoever makes a job sees and takes them (A8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_form import begin

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def nothing_stays_offered(portal: Any) -> Iterator[None]:
    yield
    done = portal.manage("shell", "-c", "from jobs.models import NamespaceVolume as V; V.objects.all().delete()")
    assert done.returncode == 0, done.stderr


def test_an_admin_offers_claims_and_the_form_takes_one(visit: Any) -> None:
    admin = visit(viewport={"width": 1280, "height": 900})
    page = admin.sign_in("admin")
    page.goto("/namespaces/vision/volumes/")
    expect(page.locator("main")).to_contain_text("There is none yet.")
    for name, path, kind in (
        ("imagenet", "/data/imagenet", "read_only"),
        ("scratch", "/scratch", ""),
        ("homes", "/home", "home"),
    ):
        page.fill("#o-name", name)
        page.fill("#o-path", path)
        page.select_option("#o-kind", kind)
        page.click("button:has-text('Offer it')")
        expect(page.locator("tbody")).to_contain_text(path)
    page.fill("#o-name", "more")
    page.fill("#o-path", "/workspace/more")
    page.click("button:has-text('Offer it')")
    expect(page.locator("#o-path_error")).to_contain_text("the pod needs /workspace itself")
    admin.picture("volumes-admin")
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    admin.picture("volumes-admin-phone")

    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    page.goto("/me/namespaces/")
    page.locator("tr", has_text="vision").get_by_role("link", name="see its volumes").click()
    expect(page.locator("main")).to_contain_text("the home of everybody's jobs")
    expect(page.locator("main")).to_contain_text("volumes: [{name: imagenet, path: /data/imagenet, read_only: true}]")
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)
    page.emulate_media(color_scheme="dark")
    alice.picture("volumes-member-dark")
    page.emulate_media(color_scheme="light")

    begin(page, command="ls /data")
    rows = page.locator('[data-rows="volume"] > [data-entry]')
    rows.first.locator("input").first.fill("imagenet")
    rows.first.locator("input").nth(1).fill("/data:ro")
    page.locator("details[data-yaml] > summary").click()
    yaml = page.locator("[name=yaml]")
    expect(yaml).to_have_value(
        "namespace: vision\nruntime: shell\ncommand: ls /data\nvolumes:\n- name: imagenet\n  path: /data\n  read_only: true\n"
    )
    expect(page.locator("main")).to_contain_text("--volume imagenet:/data:ro")
    yaml.fill(
        "namespace: vision\nruntime: shell\ncommand: ls /data\nvolumes:\n- name: scratch\n- name: imagenet\n  path: /in\n"
    )
    expect(rows.nth(1).locator("input").nth(1)).to_have_value("/in")
    expect(rows.first.locator("input").first).to_have_value("scratch")
    rows.first.scroll_into_view_if_needed()
    rows.nth(1).locator("input").nth(1).fill("/in")
    rows.nth(1).locator("input").nth(1).press("Tab")
    expect(page.locator("#e-volume")).to_contain_text("Jobs on the local cluster have no volumes")
    alice.picture("volumes-form")
    page.set_viewport_size({"width": 360, "height": 740})
    rows.first.scroll_into_view_if_needed()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    alice.picture("volumes-form-phone")
    page.click("button[type=submit]:has-text('Submit')")
    expect(page.locator("main")).to_contain_text("Jobs on the local cluster have no volumes")
