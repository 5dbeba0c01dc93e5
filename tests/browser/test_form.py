"""The form of a new job in a real browser: it eats nothing, says what is wrong where it is, and stays in step with its YAML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD

pytestmark = pytest.mark.browser

JOB_PAGE = re.compile(r"/jobs/[0-9a-z]{10}/$")


def begin(page: Page, **fields: str) -> None:
    page.goto("/jobs/new/")
    for part in page.locator("details.card:not([data-preview], [data-yaml], [open]) > summary").all():
        part.click()
    page.select_option("[name=namespace]", "vision")
    page.select_option("[name=runtime]", "shell")
    for name, value in fields.items():
        page.fill(f"[name={name}] >> nth=0", value)


def saved(page: Page) -> None:
    expect(page.locator("[data-draft-said]")).to_contain_text("Draft saved", timeout=8000)
    page.wait_for_url(re.compile(r"draft="))


def submit(page: Page) -> str:
    page.click("button[type=submit]:has-text('Submit')")
    page.wait_for_url(JOB_PAGE)
    return page.url.rstrip("/").rsplit("/", 1)[1]


def paste(page: Page, text: str) -> None:
    page.eval_on_selector(
        "[name=script]",
        """(field, text) => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            field.focus();
            field.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
        }""",
        text,
    )


def jobs_named(portal: Any, name: str) -> list[Any]:
    return [job for job in portal.rest("jobs/?limit=200")["results"] if job["name"] == name]


def test_a_draft_survives_reload_back_and_another_device_and_goes_with_its_job(visit: Any) -> None:
    desk, phone = visit(), visit(viewport={"width": 360, "height": 740})
    page = desk.sign_in("alice")
    begin(page, name="draft of a sweep", command="echo {{lr}}", param_name="lr", param_value="0.1", tags="one, two")
    saved(page)
    page.reload()
    assert page.input_value("[name=command]") == "echo {{lr}}"
    assert page.input_value("[name=param_value] >> nth=0") == "0.1"
    page.goto("/jobs/")
    page.go_back()
    assert page.input_value("[name=name]") == "draft of a sweep"
    there = phone.sign_in("alice")
    there.goto("/jobs/new/")
    there.click(".drafts > summary")
    phone.picture("form-drafts-phone")
    there.click("text=draft of a sweep")
    expect(there.locator("[name=tags]")).to_have_value("one, two")
    submit(page)
    there.goto("/jobs/new/")
    expect(there.locator("text=draft of a sweep")).to_have_count(0)


def test_a_refused_form_keeps_the_secret_and_leads_to_what_is_wrong(visit: Any) -> None:
    alice = visit(viewport={"width": 1280, "height": 900})
    page = alice.sign_in("alice")
    begin(page, name="refused", command="echo $HF_TOKEN", secret_name="HF_TOKEN", secret_value="hush", memory="lots")
    page.fill("[name=time_limit]", "4 hours")
    page.click("button[type=submit]:has-text('Submit')")
    summary = page.locator("[data-summary]")
    expect(summary).to_be_focused(timeout=8000)
    expect(summary.locator("a")).to_have_count(2)
    expect(page.locator("#e-memory")).to_contain_text("512Mi or 16Gi")
    expect(page.locator("#e-time_limit")).to_contain_text("30s, 20m, 4h or 1d12h")
    alice.picture("form-errors")
    assert page.input_value("[name=secret_value] >> nth=0") == "hush"
    summary.locator("a", has_text="RAM").click()
    expect(page.locator("[name=memory]")).to_be_focused()
    page.fill("[name=memory]", "６４Mi")
    expect(page.locator("#e-memory")).to_have_count(0, timeout=5000)
    page.fill("[name=time_limit]", "10m")
    job = submit(page)
    page.goto(f"/jobs/{job}/logs/")
    expect(page.locator("[data-log]")).to_contain_text("hush", timeout=30_000)


def test_an_ended_session_loses_nothing_not_even_the_secret(visit: Any) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    begin(page, name="signed out", command="true", secret_name="HF_TOKEN", secret_value="hush")
    saved(page)
    alice.context.clear_cookies(name="trainhall_session")
    page.click("button[type=submit]:has-text('Submit')")
    expect(page.locator("[data-summary]")).to_contain_text("Your session has ended", timeout=8000)
    page.fill("[name=tags]", "typed on")
    page.wait_for_timeout(2500)
    expect(page.locator("text=Your session has ended")).to_have_count(1)
    expect(page.locator("[data-summary]")).to_be_in_viewport()
    expect(page.locator("text=does not answer")).to_have_count(0)
    alice.picture("form-ended")
    assert page.input_value("[name=secret_value] >> nth=0") == "hush"
    with alice.context.expect_page() as opened:
        page.click("[data-summary] a")
    login = opened.value
    login.fill("input[name=username]", "alice")
    login.fill("input[name=password]", PASSWORD)
    login.click("main button.primary")
    login.wait_for_url("**/")
    login.close()
    page.fill("[name=tags]", "typed on, again")
    expect(page.locator("[data-summary]")).to_have_count(0, timeout=8000)
    expect(page.locator("[data-verdict]")).to_have_count(1)
    submit(page)
    expect(page.locator("h1")).to_have_text("signed out")


def test_a_double_click_back_and_reload_are_one_job_and_a_change_is_another(visit: Any, portal: Any) -> None:
    page = visit().sign_in("alice")
    begin(page, name="clicked twice", command="echo 1")
    page.dblclick("button[type=submit]:has-text('Submit')")
    page.wait_for_url(JOB_PAGE)
    page.reload()
    page.go_back()
    page.wait_for_timeout(500)
    page.go_forward()
    page.wait_for_url(JOB_PAGE)
    assert len(jobs_named(portal, "clicked twice")) == 1


def test_back_to_a_draft_that_became_a_job_leads_to_the_job(visit: Any, portal: Any) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    begin(page, name="became a job", command="echo 1", tags="one", script="print(1)")
    saved(page)
    job = submit(page)
    page.goto("/jobs/")  # a page or two later nothing of the form is left in memory
    page.evaluate("() => { setTimeout(() => history.go(-2)) }")
    page.wait_for_url(re.compile(r"draft="))
    told = page.locator("[data-summary]")
    expect(told).to_be_focused(timeout=8000)
    alice.picture("form-became")
    expect(told.locator(f'a[href="/jobs/{job}/"]').first).to_be_visible()
    page.wait_for_timeout(500)
    whole = (page.input_value("[name=name]"), page.input_value("[name=command]"), page.input_value("[name=script]"))
    assert whole in {("", "", ""), ("became a job", "echo 1", "print(1)")}
    page.click("button[type=submit]:has-text('Submit')")
    page.wait_for_timeout(1500)
    assert len(jobs_named(portal, "became a job")) == 1


def test_a_refused_upload_is_said_at_its_field_and_the_outlook_waits_for_it(visit: Any) -> None:
    alice = visit()
    page = alice.sign_in("alice")
    begin(page, name="refused upload", command="true")
    expect(page.locator("[data-verdict]")).to_have_count(1, timeout=8000)
    page.check("[name=code_kind][value=upload]")
    page.set_input_files(
        "[name=code_files]", [{"name": "code.zip", "mimeType": "application/zip", "buffer": b"no zip"}]
    )
    expect(page.locator("#e-code_files")).to_be_visible(timeout=8000)
    outlook = page.locator("[data-forecast-result]")
    expect(outlook).to_contain_text("Mend the upload first", timeout=8000)
    words = page.locator("#e-code_files").inner_text()
    page.click("button[type=submit]:has-text('Submit')")
    expect(page.locator("[data-summary]")).to_be_focused(timeout=8000)
    expect(page.get_by_text(words)).to_have_count(2)
    expect(outlook).to_contain_text("Mend the upload first")
    alice.picture("form-refused-upload")
    outlook.locator("a").click()
    expect(page.locator("[name=code_files]")).to_be_focused()
    files = [{"name": "train.py", "mimeType": "text/x-python", "buffer": b"print(1)"}]
    page.set_input_files("[name=code_files]", files)
    expect(page.locator("[data-verdict]")).to_have_count(1, timeout=8000)
    expect(page.locator("#e-code_files")).to_have_count(0)


def test_yaml_and_form_stay_in_step_and_nothing_is_dropped(visit: Any, portal: Any) -> None:
    alice = visit(viewport={"width": 1280, "height": 1000})
    page = alice.sign_in("alice")
    begin(page, name="in step", command="echo {{lr}}", param_name="lr", param_value="0.1")
    page.click("[data-yaml] > summary")
    yaml = page.locator("[name=yaml]")
    expect(yaml).to_have_value(re.compile(r"lr: 0\.1"), timeout=5000)
    yaml.fill("# ours\n" + yaml.input_value() + "notify: [finished]  # only then\nresources: {memory: 64Mi}\n")
    expect(page.locator("[name=memory]")).to_have_value("64Mi", timeout=5000)
    expect(page.locator("[data-extra-names]")).to_have_text("notify")
    page.fill("[name=param_value] >> nth=0", "0.5")
    expect(yaml).to_have_value(re.compile(r"lr: 0\.5"), timeout=5000)
    expect(page.locator("[data-rendered-command]")).to_have_text("echo 0.5")
    alice.picture("form-yaml")
    text = yaml.input_value()
    yaml.fill(text + "comand: x\n")
    expect(page.locator("#e-yaml")).to_contain_text("did you mean 'command'?", timeout=5000)
    yaml.fill(text)
    expect(page.locator("#e-yaml")).to_have_count(0, timeout=5000)
    job = submit(page)
    page.goto(f"/jobs/{job}/spec/")
    for kept in ("# ours", "# only then", "lr: 0.5"):
        expect(page.locator("pre").first).to_contain_text(kept)


def test_a_clone_shows_what_was_changed_while_it_is_changed(visit: Any) -> None:
    alice, bob = visit(), visit(viewport={"width": 1280, "height": 1000})
    page = alice.sign_in("alice")
    begin(page, name="vit-b-90", command="echo {{epochs}} {{lr}}", param_name="epochs", param_value="90")
    page.click("[data-add=param]")
    page.fill("[name=param_name] >> nth=1", "lr")
    page.fill("[name=param_value] >> nth=1", "3e-4")
    parent = submit(page)
    page = bob.sign_in("bob")
    page.goto(f"/jobs/{parent}/")
    page.click(".actions a:has-text('Clone')")
    expect(page.locator("[name=name]")).to_have_value("vit-b-90-2")
    expect(page.locator("[data-changes]")).to_contain_text("Nothing but the name", timeout=5000)
    page.fill("[name=param_value] >> nth=0", "120")
    expect(page.locator("[data-changes]")).to_have_text("epochs 90 → 120", timeout=5000)
    bob.picture("form-clone")
    child = submit(page)
    page.goto(f"/jobs/{child}/spec/")
    expect(page.locator("main")).to_contain_text("A clone of vit-b-90")
    expect(page.locator(".changes")).to_contain_text("epochs 90")
    page.goto(f"/jobs/new/?from={child}")
    expect(page.locator("[name=name]")).to_have_value("vit-b-90-3")


def test_enter_and_an_input_method_never_submit(visit: Any, portal: Any) -> None:
    page = visit().sign_in("alice")
    begin(page, name="学習", command="echo ok")
    page.focus("[name=name]")
    page.keyboard.press("Enter")
    composing = "{key: 'Enter', ctrlKey: true, bubbles: true, isComposing: true}"
    composing = f"(field) => field.dispatchEvent(new KeyboardEvent('keydown', {composing}))"
    page.eval_on_selector("[name=name]", composing)
    page.wait_for_timeout(800)
    assert "/jobs/new/" in page.url and jobs_named(portal, "学習") == []
    page.focus("[name=command]")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(JOB_PAGE)
    expect(page.locator("h1")).to_have_text("学習")


def test_who_types_before_the_scripts_have_come_sends_nothing_and_loses_nothing(visit: Any, portal: Any) -> None:
    page = visit().sign_in("alice")
    late: list[Any] = []
    page.route(re.compile(r"/form[.0-9a-z]*\.js$"), lambda route: late.append(route))
    page.goto("/jobs/new/", wait_until="commit")
    page.fill("[name=name]", "quick hands")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    assert late and page.url.endswith("/jobs/new/") and jobs_named(portal, "quick hands") == []
    for route in late:
        route.continue_()
    saved(page)
    page.reload(wait_until="commit")
    expect(page.locator("[name=name]")).to_have_value("quick hands")


def test_a_pasted_env_file_becomes_rows_and_its_secrets_are_offered_to_be_secrets(visit: Any) -> None:
    alice = visit(viewport={"width": 1280, "height": 1000})
    page = alice.sign_in("alice")
    begin(page, name="env", command="env")
    page.click("text=Paste a .env file")
    page.fill("[name=env_text]", "# ours\nexport OMP_NUM_THREADS=4\nWANDB_API_KEY='hush'\n")
    page.click("[data-take-env]")
    expect(page.locator("[name=env_name] >> nth=1")).to_have_value("WANDB_API_KEY", timeout=5000)
    page.locator(".offer").scroll_into_view_if_needed()
    alice.picture("form-env")
    page.click(".offer button")
    expect(page.locator("[name=secret_name][value], [name=secret_name]").last).to_have_value("WANDB_API_KEY")
    expect(page.locator("[name=env_name] >> nth=0")).to_have_value("OMP_NUM_THREADS")
    submit(page)


def test_a_megabyte_is_pasted_a_folder_of_200_files_is_sent_and_too_much_is_refused(visit: Any, tmp_path: Path) -> None:
    page = visit().sign_in("alice")
    begin(page, name="large", command="tail -n 1 train.sh", script_name="train.sh")
    paste(page, "# a line of a long script\n" * 42_000 + "# the end\n")
    expect(page.locator("[data-script-count]")).to_have_text("42,001 lines, 1.0 MB")
    job = submit(page)
    page.goto(f"/jobs/{job}/logs/")
    expect(page.locator("[data-log]")).to_contain_text("# the end", timeout=30_000)
    begin(page, name="too large", command="true")
    paste(page, "x\n" * (2 * 2**20 + 1))
    expect(page.locator("#e-script")).to_contain_text("at most 4.0 MB may be pasted", timeout=5000)
    folder = tmp_path / "code"
    for number in range(200):
        place = folder / f"d{number % 7}" / f"m{number}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(number))
    begin(page, name="folder", command="find . -name 'm*.py' | wc -l")
    page.check("[name=code_kind][value=upload]")
    page.eval_on_selector("[name=code_files]", "(field) => (field.webkitdirectory = true)")
    page.set_input_files("[name=code_files]", str(folder))
    expect(page.locator("[data-file-list]")).to_contain_text("200 files", timeout=15_000)
    expect(page.locator("[data-file-list]")).to_contain_text("kept on the portal", timeout=15_000)
    job = submit(page)
    page.goto(f"/jobs/{job}/logs/")
    expect(page.locator("[data-log]")).to_contain_text("200", timeout=30_000)


def test_a_locked_field_is_read_only_and_what_was_typed_comes_back(visit: Any, portal: Any) -> None:
    admin = visit(viewport={"width": 1280, "height": 1000})
    page = admin.sign_in("admin")
    portal.manage(
        "shell",
        "-c",
        "from jobs.models import Runtime; Runtime.objects.update_or_create(slug='locked', defaults=dict(title='Locked down',"
        " description='Small and short.', image='small:1', launchers=['plain'], locked=['time_limit', 'resources.memory'],"
        " deprecation='Use Shell instead.', defaults={'time_limit': '5m', 'resources': {'memory': '64Mi'}}))",
    )
    try:
        page.goto("/jobs/new/")
        page.select_option("[name=runtime]", "shell")
        page.fill("[name=time_limit]", "2h")
        page.fill("[name=memory]", "1Gi")
        page.select_option("[name=runtime]", "locked")
        for name, fixed in (("time_limit", "5m"), ("memory", "64Mi")):
            field = page.locator(f"[name={name}]")
            expect(field).to_have_attribute("readonly", "")
            expect(field).to_have_attribute("placeholder", fixed)
            expect(field).to_have_value("")
            expect(page.locator(f"#locked-{name}")).to_have_text("set by the runtime")
        expect(page.locator("[data-runtime-deprecation]")).to_contain_text("Use Shell instead.")
        admin.picture("form-locked")
        page.select_option("[name=runtime]", "shell")
        expect(page.locator("[name=time_limit]")).to_have_value("2h")
        expect(page.locator("[name=memory]")).to_have_value("1Gi")
    finally:
        portal.manage("shell", "-c", "from jobs.models import Runtime; Runtime.objects.filter(slug='locked').delete()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_fits_a_phone_with_long_names_and_errors(visit: Any, scheme: str) -> None:
    phone = visit(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = phone.sign_in("alice")
    begin(page, name="n" * 120, command="echo " + "w" * 200 + " {{wrong}}", env_name="A_VERY_LONG_NAME_" * 4)
    page.fill("[name=param_name] >> nth=0", "a_parameter_with_a_long_name_" * 2)
    page.fill("[name=memory]", "lots")
    page.click("button[type=submit]:has-text('Submit')")
    expect(page.locator("[data-summary]")).to_be_visible(timeout=8000)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    phone.picture(f"form-phone-{scheme}-errors")
    page.locator("[name=command]").scroll_into_view_if_needed()
    phone.picture(f"form-phone-{scheme}-command")
    assert wide <= 0


def test_the_form_works_without_javascript(visit: Any) -> None:
    page = visit(java_script_enabled=False).sign_in("alice")
    page.goto("/jobs/new/")
    page.select_option("[name=namespace]", "vision")
    page.select_option("[name=runtime]", "shell")
    page.fill("[name=name]", "plain")
    page.fill("[name=command]", "echo {{lr}}")
    page.click("button[type=submit]:has-text('Submit')")
    expect(page.locator("#e-command")).to_contain_text("Uses the parameter 'lr'")
    page.fill("[name=command]", "echo")
    page.click("button[type=submit]:has-text('Submit')")
    page.wait_for_url(JOB_PAGE)


def test_a_dropped_file_that_cannot_be_read_is_said_at_its_field(visit: Any) -> None:
    page = visit().sign_in("alice")
    page.goto("/jobs/new/")
    begin(page, name="dropped", command="true")
    page.check("[name=code_kind][value=upload]")
    # as a browser tells of a file that was moved while it was dragged
    page.evaluate(
        """() => {
          const gone = (_ok, refused) => refused(new DOMException("moved away", "NotFoundError"));
          const entry = { isFile: true, name: "a.py", file: gone };
          const item = { kind: "file", getAsFile: () => null, webkitGetAsEntry: () => entry };
          const drop = new Event("drop", { bubbles: true, cancelable: true });
          Object.defineProperty(drop, "dataTransfer", { value: { items: [item] } });
          document.querySelector("[data-drop]").dispatchEvent(drop);
        }"""
    )
    expect(page.locator("#e-code_files")).to_contain_text("could not be read")
