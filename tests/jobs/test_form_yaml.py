"""The form and its YAML are two sides of one document: nothing is lost, and what is wrong is named where it stands."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.exceptions import SpecError
from jobs.form import posted
from jobs.form.commandline import submit_line
from jobs.form.dotenv import read_dotenv
from jobs.form.fields import data_of, fields_of
from jobs.models import Job, Runtime
from jobs.reading import read_document
from tests.cast import PASSWORD

pytestmark = pytest.mark.django_db

WHOLE: dict[str, Any] = {
    "namespace": "vision",
    "name": "digits",
    "runtime": "numpy",
    "image": "other:1",
    "code": {"files": {"train.py": "print('学習')\n"}},
    "command": "python train.py --lr {{lr}}\n",
    "parameters": {"lr": 0.1, "big": True, "name": "a b", "0.10": "0.10"},
    "env": {"A": "1", "B": "x y"},
    "resources": {"workers": 2, "gpus": 1, "gpu_type": "V100", "cpus": "4", "memory": "16Gi"},
    "launcher": "plain",
    "priority": "low",
    "preemptible": False,
    "time_limit": "4h",
    "retries": 1,
    "stop_grace": "30s",
    "notify": ["finished", "failed"],
    "tags": ["mnist", "two words"],
}
YAML = """# ours
namespace: vision
runtime: shell
command: echo {{lr}}   # says it
parameters: {lr: 0.1}
notify: [failed]
"""


@pytest.fixture
def browser(world: None, settings: Any, tmp_path: Any) -> Client:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}},
    }
    client = Client()
    assert client.login(username="alice", password=PASSWORD)
    return client


def ask(client: Client, **fields: Any) -> Any:
    answer = client.post("/jobs/document/", {"code_kind": "none", "written": "form", **fields})
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.parametrize(
    "data",
    [
        WHOLE,
        {"command": "x", "code": {"git": "https://git.example.com/r", "ref": "main"}},
        {"command": "x", "code": {"upload": "a" * 64}},
        {"command": "x", "code": {"files": {"a.py": "1", "b.py": "2"}}},
        {
            "command": "x",
            "comand": "y",
            "tags": ["a,b"],
            "resources": {"gpu": 1},
            "env": ["no"],
            "parameters": {"a": None},
        },
        {"command": "x", "secrets": {"WANDB": {"from": "team-keys", "key": "wandb"}}},
    ],
)
def test_every_document_goes_through_the_form_unchanged(data: dict[str, Any]) -> None:
    fields = {**posted.blank(namespace=""), **fields_of(data)}
    assert data_of(fields, secrets=[]) == data


def test_the_yaml_of_the_form_is_the_document_that_rest_takes(browser: Client) -> None:
    answer = ask(
        browser,
        namespace="vision",
        runtime="shell",
        command="echo hi",
        gpus="８",
        secret_name="T",
        secret_value="canary-1",
    )
    assert read_document(answer["yaml"], format="yaml").data == {
        "namespace": "vision",
        "runtime": "shell",
        "command": "echo hi",
        "secrets": {"T": {"value": ""}},
        "resources": {"gpus": 8},
    }
    assert "canary" not in str(answer)


def test_yaml_fills_the_form_and_what_has_no_field_is_kept(browser: Client) -> None:
    answer = ask(browser, written="yaml", yaml=YAML, yaml_own="1")
    assert answer["fields"]["param"] == [{"name": "lr", "value": "0.1"}] and answer["extra"] == ["notify"]
    assert answer["command"] == "echo 0.1   # says it" or answer["command"] == "echo 0.1"
    form = {
        **{name: answer["fields"][name] for name in ("namespace", "runtime", "command", "extra")},
        "param_name": ["lr"],
        "param_value": ["0.5"],
        "yaml": YAML,
        "yaml_own": "1",
    }
    assert ask(browser, **form)["yaml"] == YAML.replace("lr: 0.1", "lr: 0.5")
    sent = browser.post("/jobs/new/", {"code_kind": "none", "written": "form", "idempotency_key": "1", **form})
    assert sent.status_code == 302, sent.content.decode()[:3000]
    job = Job.objects.get()
    assert job.spec_text == YAML.replace("lr: 0.1", "lr: 0.5") and job.spec_format == "yaml"
    assert job.parsed.notify == ("failed",)


def test_yaml_changed_last_is_stored_as_it_was_written(browser: Client) -> None:
    text = YAML + "secrets: {HF_TOKEN: {value: ''}}\n"
    body = {"written": "yaml", "yaml": text, "yaml_own": "1", "secret_name": "HF_TOKEN", "secret_value": "canary-2"}
    answer = browser.post("/jobs/new/", {**body, "command": "the form is behind", "code_kind": "none"})
    assert answer.status_code == 302, answer.content.decode()[:3000]
    job = Job.objects.get()
    assert "# says it" in job.spec_text and "canary" not in job.spec_text
    assert [secret.name for secret in job.secrets.all()] == ["HF_TOKEN"]


def test_a_secret_typed_into_the_yaml_moves_to_its_field(browser: Client) -> None:
    answer = ask(browser, written="yaml", yaml=YAML + "secrets: {T: {value: canary-3}}  # mine\n")
    assert answer["secrets"] == {"T": "canary-3"}
    assert "canary" not in answer["yaml"] and "# mine" in answer["yaml"]


def test_an_unknown_field_is_named_with_its_line_and_the_nearest_known_one(browser: Client) -> None:
    answer = ask(browser, written="yaml", yaml=YAML + "resorces: {gpus: 2}\n")
    assert any("line 7" in text and "did you mean 'resources'?" in text for text in answer["yaml_errors"])
    refused = browser.post("/jobs/new/", {"written": "yaml", "yaml": YAML + "resorces: {}\n", "code_kind": "none"})
    assert refused.status_code == 422 and "resorces" in refused.context["errors"]["yaml"][0]
    broken = ask(browser, written="yaml", yaml="a: [1")
    assert "line" in broken["errors"]["yaml"][0] and "fields" not in broken


def test_an_unknown_field_of_a_mapping_stands_at_the_yaml_and_not_among_what_was_taken(browser: Client) -> None:
    text = YAML + "resources: {gpu: 1}\ngpus: 2\n"
    answer = ask(browser, written="yaml", yaml=text)
    assert "workers" not in answer["errors"] and "gpus" not in answer["errors"]
    assert any(told.startswith("resources.gpu: ") for told in answer["errors"]["yaml"]), answer["errors"]
    assert answer["extra"] == ["notify"]
    refused = browser.post("/jobs/new/", {"written": "yaml", "yaml": text, "code_kind": "none", "idempotency_key": "u"})
    assert refused.status_code == 422 and set(refused.context["errors"]) == {"yaml"}
    assert 'href="#f-yaml"' in refused.content.decode()


def test_half_written_yaml_is_told_and_not_dropped(browser: Client) -> None:
    form = {"namespace": "vision", "runtime": "shell", "command": "echo", "code_kind": "none", "yaml_own": "1"}
    answer = ask(browser, **form, yaml="notify: [fini")
    assert answer["errors"]["yaml"] and "yaml" not in answer
    assert browser.post("/jobs/new/", {**form, "written": "form", "yaml": "notify: [fini"}).status_code == 422
    assert not Job.objects.exists()


def test_the_command_is_shown_as_it_runs_and_a_wrong_parameter_is_named(browser: Client) -> None:
    form = {"namespace": "vision", "runtime": "shell", "command": 'echo "{{lr}}" {{epochs}}'}
    rows = {"param_name": ["lr", "epochs", "spare"], "param_value": ["$(id)", "9", "1"]}
    answer = ask(browser, **form, **rows)
    assert answer["command"] == 'echo ""\'$(id)\'"" 9'
    assert answer["hints"] == ["The command does not use the parameter spare: write {{spare}} where it belongs."]
    answer = ask(browser, **{**form, "command": "echo {{epoch}}"}, **rows)
    assert "'epoch'" in answer["errors"]["command"][0] and "did you mean 'epochs'?" in answer["errors"]["command"][0]
    assert answer["command"] == ""


def test_a_script_of_a_megabyte_is_taken_and_a_larger_one_refused_with_the_limit(browser: Client) -> None:
    form = {
        "namespace": "vision",
        "runtime": "shell",
        "command": "sh a.sh",
        "code_kind": "files",
        "script_name": "a.sh",
    }
    script = "echo 1\n" * (2**20 // 7)
    answer = ask(browser, **form, script=script)
    assert "code" not in read_document(answer["yaml"], format="yaml").data, "too large to read; it stays in its field"
    sent = browser.post("/jobs/new/", {**form, "written": "yaml", "yaml": answer["yaml"], "script": script})
    assert sent.status_code == 302, sent.content.decode()[:2000]
    assert Job.objects.get().code.size < 2**20
    again = browser.get(f"/jobs/new/?from={Job.objects.get().pk}").context["form"]
    assert again["script"] == script
    refused = browser.post("/jobs/new/", {**form, "script": "x" * (4 * 2**20 + 1)})
    assert refused.status_code == 422
    assert refused.context["errors"]["script"] == [
        "The script is 4.0 MB; at most 4 MB may be pasted. Upload it as a file instead."
    ]


def test_a_locked_field_is_refused_by_name_and_the_catalogue_tells_it(browser: Client) -> None:
    Runtime.objects.filter(pk="shell").update(
        locked=["time_limit"], deprecation="Use numpy.", description="Any command."
    )
    page = browser.get("/jobs/new/")
    card = next(one for one in page.context["catalogue"] if one["slug"] == "shell")
    assert (card["locked"], card["deprecation"], card["defaults"]["time_limit"]) == (["time_limit"], "Use numpy.", "1h")
    form = {"namespace": "vision", "runtime": "shell", "command": "echo", "code_kind": "none", "time_limit": "9h"}
    refused = browser.post("/jobs/new/", form)
    assert "locked by the runtime to '1h'" in refused.context["errors"]["time_limit"][0]
    assert browser.post("/jobs/new/", {**form, "time_limit": ""}).status_code == 302


def test_a_pasted_env_file_becomes_the_environment(browser: Client) -> None:
    text = '# ours\nexport A=1\nB=\'x # y\'\nC="two\\nlines"\nD= spaced # why\nE=\n\nF="over\ntwo"\r\n'
    assert read_dotenv(text) == {"A": "1", "B": "x # y", "C": "two\nlines", "D": "spaced", "E": "", "F": "over\ntwo"}
    with pytest.raises(SpecError, match="line 2 is not NAME=value"):
        read_dotenv("A=1\nwhat is this\n")
    form = {
        "namespace": "vision",
        "runtime": "shell",
        "command": "env",
        "env_name": ["A", "Z"],
        "env_value": ["0", "9"],
    }
    answer = ask(browser, **form, env_text=text)
    assert answer["fields"]["env"][0] == {"name": "Z", "value": "9"} and len(answer["fields"]["env"]) == 7
    sent = browser.post("/jobs/new/", {**form, "code_kind": "none", "env_text": "A=1\nB=2"})  # without JavaScript
    assert sent.status_code == 302
    assert Job.objects.get().parsed.env == {"Z": "9", "A": "1", "B": "2"}


def test_the_command_line_says_the_same_job() -> None:
    line = submit_line(WHOLE)
    for part in (
        "--gpus 1",
        "--param lr=0.1",
        "--env 'B=x y'",
        "--no-preemption",
        "--code train.py",
        "--tag 'two words'",
    ):
        assert part in line, part
    assert submit_line({"command": "x", "volumes": []}) == "trainhall submit job.yaml"
    volumes = [{"name": "a"}, {"name": "b", "read_only": True}, {"name": "c", "path": "/c", "read_only": False}]
    assert submit_line({"command": "x", "volumes": volumes}) == (
        "trainhall submit --volume a --volume b:ro --volume c:/c:rw -- x"
    )
    assert submit_line({"command": "x", "volumes": [{"name": "a", "more": 1}]}) == "trainhall submit job.yaml"


def test_an_ended_session_comes_back_to_the_form_with_everything(browser: Client) -> None:
    typed = {"name": "precious", "namespace": "vision", "command": "echo {{x}}", "env": [{"name": "A", "value": "1"}]}
    draft = browser.post("/api/v1/drafts/", typed, content_type="application/json").json()["id"]
    browser.logout()
    sent = browser.post(f"/jobs/new/?draft={draft}", {"name": "precious", "command": "echo {{x}}"})
    assert sent.status_code == 302 and sent.headers["Location"].startswith("/login/?next=")
    answer = browser.post(
        sent.headers["Location"], {"username": "alice", "password": PASSWORD, "next": f"/jobs/new/?draft={draft}"}
    )
    form = browser.get(answer.headers["Location"]).context["form"]
    assert (form["name"], form["command"], form["env"]) == ("precious", "echo {{x}}", typed["env"])


def test_a_form_that_comes_back_changed_after_its_job_was_made_is_told_and_can_be_sent(browser: Client) -> None:
    form = {
        "namespace": "vision",
        "runtime": "shell",
        "command": "echo 1",
        "code_kind": "none",
        "idempotency_key": "k1",
    }
    browser.post("/jobs/new/", form)
    again = browser.post("/jobs/new/", {**form, "command": "echo 2"})
    assert again.status_code == 422 and Job.objects.get().pk in again.context["errors"]["form"][0]
    fresh = again.context["form"]["idempotency_key"]
    assert fresh != "k1"
    assert browser.post("/jobs/new/", {**form, "command": "echo 2", "idempotency_key": fresh}).status_code == 302
    assert Job.objects.count() == 2
