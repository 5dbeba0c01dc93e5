"""A job document is read exactly or refused with the field, the line and the fix."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest

from jobs.exceptions import SpecError
from jobs.fields import parse_duration
from jobs.parsing import argv_of, parse_job
from jobs.quoting import fill_in
from jobs.reading import document_of, read_document
from jobs.spec import SecretRef, spec_from_dict, spec_to_dict

RUNTIMES: dict[str, Any] = {
    "numpy": {
        "image": "numpy:1",
        "launchers": ["plain", "torchrun"],
        "defaults": {"resources": {"cpus": "500m", "memory": "512Mi"}, "time_limit": "1h", "env": {"A": "1"}},
        "locked": ["image", "resources.memory"],
    }
}
PRIORITIES = ("high", "normal", "low")
LEAST = {"namespace": "vision", "runtime": "numpy", "command": "python train.py"}


def parse(data: dict[str, Any] | str, form: str = "yaml") -> Any:
    document = read_document(data, format=form) if isinstance(data, str) else document_of(data)
    return parse_job(document, runtimes=RUNTIMES, priorities=PRIORITIES)


def errors(data: dict[str, Any] | str, form: str = "yaml") -> dict[str, list[str]]:
    with pytest.raises(SpecError) as caught:
        parse(data, form)
    return caught.value.fields


def test_three_fields_are_enough_and_the_runtime_fills_the_rest() -> None:
    spec = parse(LEAST).spec
    assert (spec.name, spec.image, spec.launcher, spec.priority) == ("numpy", "numpy:1", "plain", "normal")
    assert (spec.resources.cpu_millis, spec.resources.memory_bytes, spec.time_limit) == (500, 512 * 2**20, 3600)
    assert spec.env == {"A": "1"}


def test_the_typed_form_survives_the_database() -> None:
    spec = parse({**LEAST, "secrets": {"T": {"value": "x"}}, "tags": ["a"], "code": {"files": {"a.py": "1"}}}).spec
    assert spec_from_dict(spec_to_dict(spec)) == spec
    assert spec.secrets == (SecretRef(name="T"),)


def test_what_is_given_goes_over_defaults_field_by_field() -> None:
    spec = parse({**LEAST, "resources": {"gpus": 2}, "env": {"B": "2"}}).spec
    assert (spec.resources.gpus, spec.resources.cpu_millis) == (2, 500)
    assert spec.env == {"A": "1", "B": "2"}


def test_an_unknown_field_names_its_line_and_the_nearest_known_one() -> None:
    found = errors("namespace: vision\nruntime: numpy\ncommand: x\nresources:\n  gpu: 2\ncomand: y\n")
    assert found["resources.gpu"] == ["line 5: there is no such field; did you mean 'gpus'?"]
    assert found["comand"] == ["line 6: there is no such field; did you mean 'command'?"]


def test_all_errors_come_in_one_answer() -> None:
    assert set(errors({"runtime": "nope", "retries": -1, "stop_grace": "10m", "tags": "a"})) == {
        "namespace",
        "runtime",
        "command",
        "retries",
        "stop_grace",
        "tags",
    }


def test_a_locked_field_is_refused_by_name_unless_it_says_the_same() -> None:
    assert "locked" in errors({**LEAST, "resources": {"memory": "1Gi"}})["resources.memory"][0]
    assert parse({**LEAST, "resources": {"memory": "512Mi"}}).spec.resources.memory_bytes == 512 * 2**20


def test_an_unused_parameter_is_fine_and_an_unknown_one_is_not() -> None:
    assert "'lr'" in errors({**LEAST, "command": "train --lr {{lr}}"})["command"][0]
    assert parse({**LEAST, "command": "train {{ lr }}", "parameters": {"lr": 0.1, "x": 1}}).spec.parameters["lr"] == 0.1


@pytest.mark.parametrize("value", ["a b", "$(reboot)", "'; rm -rf /", "`id`", "a\nb", '"', "--flag=1", ""])
def test_parameters_are_one_word_for_the_shell(value: str) -> None:
    import subprocess

    command = fill_in("printf '%s|' {{x}} end", {"x": value})
    assert subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True).stdout == f"{value}|end|"


def test_a_stop_ends_with_the_exit_code_of_the_program_not_of_the_shell() -> None:
    import os
    import signal
    import subprocess

    # not the shell's last word, so that no shell replaces itself by the program
    script = "trap 'sleep 0.3; exit 75' TERM; echo ready; while :; do sleep 0.1; done"
    child = subprocess.Popen(
        argv_of("/bin/sh -c {{script}}; echo never", {"script": script}),
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    os.killpg(child.pid, signal.SIGTERM)
    assert child.communicate(timeout=10)[0] == ""
    assert child.returncode == 75


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), (90, 90), ("30s", 30), ("20m", 1200), ("4h", 14400), ("1d12h", 129600), ("1h30m", 5400)],
)
def test_lengths_of_time(text: Any, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "4 h", "h", "-1", "1.5h", True, None, "10y", "٣h", "9" * 40])
def test_what_is_no_length_of_time(text: Any) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("env", {"X": True}),
        ("env", {"X": 1.1}),
        ("env", {"1X": "a"}),
        ("env", {"TRAINHALL_TOKEN_FILE": "/x"}),
        ("env", {"X": "a\x00b"}),
        ("secrets", {"X": "plain"}),
        ("secrets", {"X": {"value": ""}}),
        ("secrets", {"X": {"value": "a", "more": 1}}),
        ("code", {"files": {"../x": "1"}}),
        ("code", {"files": {"/etc/x": "1"}}),
        ("code", {"files": {"a\\b": "1"}}),
        ("code", {"files": {"a": "1"}, "git": "https://x/y"}),
        ("code", {"upload": "abc"}),
        ("code", {"git": "file:///etc"}),
        ("code", {"git": "https://x/y", "ref": "--upload-pack=x"}),
        ("code", {}),
        ("priority", "urgent"),
        ("launcher", "mpi"),
        ("preemptible", "yes"),
        ("resources", {"workers": 0}),
        ("resources", {"gpus": 1.5}),
        ("resources", {"gpus": True}),
        ("resources", {"memory": "lots"}),
        ("resources", {"memory": "1"}),
        ("resources", {"cpus": "-1"}),
        ("name", 7),
        ("name", "x" * 201),
        ("name", "a\x07b"),
        ("command", ""),
        ("command", 3),
        ("volumes", {"name": "x"}),
        ("parameters", {"a b": 1}),
        ("parameters", []),
        ("notify", ["sometimes"]),
    ],
)
def test_each_wrong_value_is_refused_at_its_field(field: str, value: Any) -> None:
    found = errors({**LEAST, field: value})
    assert all(name == field or name.startswith(f"{field}.") for name in found), found


def test_a_number_in_env_is_text_and_a_bare_word_of_yaml_is_not_guessed() -> None:
    spec = parse("namespace: vision\nruntime: numpy\ncommand: x\nenv: {N: 4, M: no, T: 12:30}\n").spec
    assert (spec.env["N"], spec.env["M"], spec.env["T"]) == ("4", "no", "12:30")


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n" + "namespace: *c\n"


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "[" * 500,
        "namespace: a\nnamespace: b\n",
        "- a\n- b\n",
        "just text",
        "a: [",
        "\tx: 1",
        "!!python/object/apply:os.system [id]",
        "a: 1\n---\nb: 2\n",
        "a: " + "x" * 600_000,
    ],
)
def test_hostile_yaml_is_refused_quickly(text: str) -> None:
    begin = time.monotonic()
    with pytest.raises(SpecError):
        parse(text)
    assert time.monotonic() - begin < 5  # not a benchmark: a bomb that goes off takes for ever


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, "{", "[]", '"x"', "", '{"a": 1e999}', "9" * 5000]
)
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse(text, "json")


def test_the_text_is_kept_verbatim_until_a_secret_is_in_it() -> None:
    text = "# my job\nruntime: numpy   # odd   spacing\nnamespace: vision\ncommand: x\n"
    assert read_document(text, format="yaml").without_values_of_secrets() == text
    kept = read_document(text + "secrets: {T: {value: hush}}\n", format="yaml").without_values_of_secrets()
    assert "hush" not in kept
    assert "# my job" in kept and kept.index("runtime") < kept.index("namespace")


@pytest.mark.parametrize("text", ["<<: {a: 1}\nnamespace: x\n", "env:\n  <<: {A: b}\n", "<<: [{a: 1}, {b: 2}]\n"])
def test_merge_keys_are_refused_with_their_line(text: str) -> None:
    with pytest.raises(SpecError, match=r"Line \d: merge keys"):
        read_document(text, format="yaml")


@pytest.mark.parametrize(
    ("field", "value"),
    [("image", "x\nhostNetwork: true"), ("image", "-x"), ("gpu_type", "H200,node=x"), ("gpu_type", "a\nb")],
)
def test_words_that_go_to_a_cluster_have_a_form(field: str, value: str) -> None:
    data = {"namespace": "vision", "runtime": "shell", "command": "true"}
    data |= {field: value} if field == "image" else {"resources": {field: value}}
    with pytest.raises(SpecError) as raised:
        parse_job(document_of(data), runtimes={"shell": {"image": "a"}}, priorities=["normal"])
    assert list(raised.value.fields) == [field if field == "image" else f"resources.{field}"]


@pytest.mark.parametrize(
    "value",
    ["!!python/tuple [a]", "!!set {a, b}", "!!omap [a: 1]", "!!pairs [a: 1]", "!x [a]", "!x {a: 1}", "!!binary aGk="],
)
@pytest.mark.parametrize("field", ["command", "volumes", "env", "resources", "parameters", "secrets"])
def test_values_with_tags_are_wrong_values_and_no_crash(field: str, value: str) -> None:
    document = read_document(f"namespace: vision\nruntime: numpy\n{field}: {value}\n", format="yaml")
    with suppress(SpecError):
        parse_job(document, runtimes={}, priorities=[])


def test_a_field_whose_name_is_a_list_is_refused() -> None:
    with pytest.raises(SpecError, match="no text"):
        read_document("? [a, b]\n: c\n", format="yaml")
