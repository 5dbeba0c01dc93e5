"""The cast through a real directory: it opens the door and gives the roles, and what it takes away ends on open pages by itself.

One portal beside one slapd for the whole file, with a pass every few seconds; the stories put the directory back.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from portal.embedded.demo_people import GROUPS, PEOPLE
from portal.embedded.slapd import Slapd
from tests.browser.conftest import PASSWORD, Visit
from tests.browser.test_accessibility import serious
from tests.browser.test_story import status
from tests.directory import READER_SECRET, SECRET, changed
from tests.portal.running import Portal

pytestmark = pytest.mark.browser
EVERY = 5  # seconds between two passes, 120 by default
SOON = 30_000  # ms: a pass, and what follows it on a busy machine
WRONG = "User name or password is wrong."
LONG = "echo from the hidden hall; sleep 600"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 800}


@pytest.fixture(scope="module")
def portal(slapd: Slapd) -> Iterator[Portal]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-directory-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    (folder / "data").mkdir()
    (folder / "data" / "demo-password").write_text(PASSWORD)
    told = {
        **slapd.environment(READER_SECRET),
        "LDAP_SYNC_SECONDS": str(EVERY),
        "TRAINHALL_LOCAL_GPUS": "1",  # the second job that wants one waits
    }
    portal = Portal(folder / "data", settings=told, token="made once there are people")
    try:
        portal.start()
        portal.token = portal.manage("create_token", "admin").stdout.strip()
        yield portal
    finally:
        portal.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


Enter = Callable[..., tuple[Visit, Page]]


@pytest.fixture
def enter(chromium: Browser, portal: Portal) -> Iterator[Enter]:
    """Somebody of the directory, signed in; `admin` is the portal's own."""
    visits: list[Visit] = []

    def sign_in(name: str, **options: Any) -> tuple[Visit, Page]:
        visits.append(Visit(chromium, portal, **{"viewport": DESKTOP, **options}))
        page = visits[-1].page
        page.goto("/login/")
        answer(page, name, PASSWORD if name == "admin" else SECRET)
        expect(page.get_by_role("navigation", name="Main")).to_be_visible()
        return visits[-1], page

    yield sign_in
    for one in visits:
        one.end()


def answer(page: Page, name: str, password: str) -> None:
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", password)
    page.click("main button.primary")


def submit(page: Page, name: str) -> str:
    """Through the form, with the one GPU there is; the answer is the job's id."""
    page.goto("/jobs/new/")
    page.select_option("select[name=namespace]", "vision")
    page.select_option("select[name=runtime]", "shell")
    page.fill("input[name=name]", name)
    page.fill("textarea[name=command]", LONG)
    for part in page.locator("details.card:not([data-preview], [data-yaml], [open]) > summary").all():
        part.click()
    page.fill("input[name=gpus]", "1")
    page.fill("[name=stop_grace]", "1s")
    page.click("button[type=submit]:has-text('Submit')")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-z]{10}/$"))
    return page.url.rstrip("/").rsplit("/", 1)[1]


def rule(page: Page, group: str, role: str) -> None:
    page.get_by_label("Group", exact=True).fill(group)
    page.locator("#role").select_option(role)
    page.locator("#namespace").select_option("vision")


def test_nobody_is_told_which_names_there_are(chromium: Browser, portal: Portal) -> None:
    stranger = Visit(chromium, portal, viewport=PHONE, color_scheme="dark")
    page = stranger.page
    page.goto("/login/")
    expect(page.locator("main form").first).to_contain_text("of the directory")
    said = []
    for name in ("erin", "nobody-here"):
        answer(page, name, "not it")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text(WRONG)
        said.append(alert.inner_text())
        assert page.input_value("input[name=username]") == name
        assert page.input_value("input[name=password]") == ""
    assert said[0] == said[1]
    assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    stranger.picture("directory-wrong-phone")
    stranger.end()


def test_the_directory_gives_and_takes_and_open_pages_hear_of_it(enter: Enter, portal: Portal, slapd: Slapd) -> None:
    of_admin, admin = enter("admin")
    of_alice, alice = enter("alice")
    of_dave, dave = enter("dave", viewport=PHONE, color_scheme="dark")
    _of_bob, bob = enter("bob")
    of_carol, carol = enter("carol", viewport=PHONE)
    # nobody shares anything yet: they are told whom to ask
    expect(alice.get_by_role("heading", name="You share no project yet")).to_be_visible()
    of_dave.picture("directory-no-project-phone")

    # the admin makes the project, looks at what a rule would do, and brings rights in line
    admin.goto("/admin/access/")
    admin.get_by_label("New project").fill("vision")
    admin.get_by_role("button", name="Make the project").click()
    expect(admin.get_by_text("vision is there.")).to_be_visible()
    rule(admin, "vision", "member")
    admin.get_by_role("button", name="Show what it would do").click()
    would = admin.get_by_role("region", name="What would change")
    expect(would.locator("tbody tr")).to_have_count(3)  # carol through the group of leads, which is in it
    expect(would.locator("tr", has_text="alice")).to_contain_text("becomes member")
    expect(would).not_to_contain_text("dave")
    expect(admin.get_by_text("There is none yet, so the directory gives nobody a role.")).to_be_visible()
    assert not serious(admin)
    of_admin.picture("directory-rule-previewed")
    admin.get_by_role("button", name="Add the rule").click()
    expect(admin.get_by_text("The rule is there.")).to_be_visible()
    rule(admin, "vision-leads", "lead")
    admin.get_by_role("button", name="Add the rule").click()
    expect(admin.get_by_role("region", name="Rules", exact=True).locator("tbody tr")).to_have_count(2)
    admin.get_by_role("button", name="What would change now").click()
    expect(admin.get_by_text("nothing is written yet").or_(admin.get_by_text("everything is in line"))).to_be_visible()
    admin.get_by_role("button", name="Bring rights in line now").click()
    expect(admin.locator(".messages")).to_contain_text("Done:")
    of_admin.picture("directory-rules")
    alice.goto("/me/namespaces/")
    expect(alice.get_by_role("row", name="vision")).to_contain_text("through vision")

    # alice submits, bob sees it, for dave there is no such job
    waiting_name, running_name = "waits for a GPU", "holds the GPU"
    running = submit(alice, running_name)
    status(alice, "running")
    waiting = submit(alice, waiting_name)
    status(alice, "queued|waiting")
    bob.goto("/jobs/")
    expect(bob.get_by_role("link", name=running_name)).to_be_visible()
    assert bob.goto(f"/jobs/{running}/").status == 200  # type: ignore[union-attr]
    expect(bob.get_by_role("heading", level=1)).to_have_text(running_name)
    assert dave.goto(f"/jobs/{running}/").status == 404  # type: ignore[union-attr]
    of_dave.picture("directory-hidden-job-phone")
    dave.goto("/jobs/")
    expect(dave.locator("main")).not_to_contain_text(running_name)
    assert dave.request.get("/api/v1/jobs/").json()["results"] == []

    alice.goto(f"/jobs/{running}/")
    expect(alice.locator("[data-live]").first).to_contain_text("live", timeout=15_000)
    of_alice.picture("directory-before")
    with changed(slapd, f"cn=vision,{GROUPS}", "member", f"uid=alice,{PEOPLE}", add=False):
        began = time.monotonic()
        closed = alice.get_by_role("heading", name="This job is not yours to see any more.")
        expect(closed).to_be_visible(timeout=SOON)
        took = time.monotonic() - began
        expect(alice.get_by_text("Your role in its namespace has ended, or the job is gone.")).to_be_visible()
        expect(alice.get_by_role("heading", name=running_name)).to_be_hidden()
        of_alice.picture("directory-closed")
        for path in (f"/api/v1/jobs/{running}/", f"/api/v1/jobs/{waiting}/logs/", f"/jobs/{running}/spec/"):
            assert alice.request.get(path).status == 404, path
        assert alice.request.get("/api/v1/jobs/").json()["results"] == []
        alice.get_by_role("link", name="What I may do").first.click()
        expect(alice.get_by_role("heading", name="You share no project yet")).to_be_visible()

        # what of it is left for the lead: the running job goes on, the waiting one is held until she decides
        assert portal.rest(f"jobs/{running}/")["status"] == "running"
        carol.goto(f"/jobs/{waiting}/")
        expect(carol.locator("[data-job]")).to_contain_text("alice may not run jobs in vision any more", timeout=SOON)
        of_carol.picture("directory-held-phone")
        carol.goto("/jobs/?status=queued")
        expect(carol.locator("[data-row], tbody tr", has_text=waiting_name)).to_be_visible()
        bob.reload()
        expect(bob.get_by_role("heading", level=1)).to_have_text(running_name)
    print(f"closed after {took:.1f} s, with a pass every {EVERY} s")

    # all of it is in the trail
    admin.goto("/audit/")
    admin.get_by_label("What", exact=True).fill("membership")
    admin.get_by_label("To what").fill("alice")
    admin.get_by_role("button", name="Show", exact=True).click()
    trail = admin.get_by_role("region", name="Audit")
    expect(trail.locator("tbody tr", has_text="membership.delete").first).to_contain_text("ldap:vision")
    expect(trail.locator("tbody tr", has_text="membership.create").first).to_contain_text("ldap:vision")
    expect(trail).not_to_contain_text("bob")
    of_admin.picture("directory-audit")
    for action, target in (
        ("session.login", ""),
        ("session.failed", ""),
        ("namespace.create", "vision"),
        ("group_mapping.create", "vision"),
        ("job.submit", running),
    ):
        admin.goto(f"/audit/?action={action}&target={target}")
        expect(trail.locator("tbody tr").first).to_contain_text(action)


def test_who_is_ended_in_the_directory_is_out_within_a_pass(enter: Enter, slapd: Slapd) -> None:
    _of_admin, admin = enter("admin")
    of_erin, erin = enter("erin", viewport=PHONE, color_scheme="dark")
    erin.goto("/jobs/")
    expect(erin.locator("[data-live]").first).to_contain_text("live", timeout=15_000)
    with changed(slapd, f"uid=erin,{PEOPLE}", "shadowExpire", "15000", add=True):
        told = erin.locator("[data-live]").first
        expect(told).to_contain_text("signed out: reload to sign in again", timeout=SOON)
        of_erin.picture("directory-ended-phone")
        erin.reload()
        erin.wait_for_url("**/login/**")
        answer(erin, "erin", SECRET)
        expect(erin.get_by_role("alert")).to_contain_text("This account has ended or is disabled.")
        admin.goto("/admin/users/?state=disabled")
        expect(admin.get_by_role("row", name="erin")).to_contain_text("ended in the directory")
    admin.goto("/audit/?action=user.disable&target=erin")
    expect(admin.get_by_role("region", name="Audit").locator("tbody tr").first).to_contain_text("directory")
