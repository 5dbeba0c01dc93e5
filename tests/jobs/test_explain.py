"""Every failure of tests/data/failures is told by its kind, whose it is, the line that shows it and what to do next."""

from __future__ import annotations

import json
import string
import time
from pathlib import Path
from typing import Any

import pytest

from jobs.causes.catalogue import KINDS
from jobs.causes.scene import Line, Scene, WorkerEnd, clean
from jobs.causes.signs import SIGNS
from jobs.causes.words import OWNERS, said_of
from jobs.explain import Cause, explain
from jobs.states import Reason

FAILURES = sorted((Path(__file__).parent.parent / "data" / "failures").glob("*.json"))


def scene_of(data: dict[str, Any]) -> Scene:
    """Lines are texts, or [time, text]; they are numbered over all workers, as a job's lines are."""
    seq, workers = 0, []
    for worker in data.pop("workers"):
        lines = []
        for line in worker.pop("lines", ()):
            seq += 1
            at, text = line if isinstance(line, list) else (0.0, line)
            lines.append(Line(seq, clean(text), at))
        workers.append(WorkerEnd(lines=tuple(lines), **worker))
    data["step"], data["text"] = data.pop("step_at", None), data.pop("said", "")
    return Scene(code=Reason(data.pop("code")), workers=tuple(workers), **data)


def told(path: Path) -> tuple[Cause, dict[str, Any]]:
    data = json.loads(path.read_text())
    cause = explain(scene_of(data["scene"]))
    assert cause is not None
    return cause, data["expect"]


@pytest.mark.parametrize("path", FAILURES, ids=[path.stem for path in FAILURES])
def test_a_failure_is_told(path: Path) -> None:
    cause, expected = told(path)
    stored = json.loads(json.dumps(cause.as_dict()))
    assert (stored["kind"], stored["owner"]) == (expected["kind"], expected["owner"])
    assert expected["text"] in stored["text"]
    assert 1 <= len(stored["steps"]) <= 3
    assert expected["step"] in " ".join(stored["steps"])
    assert "%(" not in stored["text"].replace("%(kind)s", "") + " ".join(stored["steps"])
    if "line" in expected:
        assert expected["line"] in stored["evidence"]["text"]
    for name in ("worker", "changes"):
        if name in expected:
            assert stored[name] == expected[name]
    if "others" in expected:
        assert [other["worker"] for other in stored["others"]] == expected["others"]


def test_there_are_enough_of_them_and_each_sign_is_of_a_kind_that_has_words() -> None:
    assert len(FAILURES) >= 25
    assert {sign.kind for sign in SIGNS} - {"xid", "no_gpu"} <= set(KINDS)
    for kind in KINDS.values():
        assert kind.owner in OWNERS
        steps = [one for step in kind.steps for one in ((step,) if isinstance(step, str) else step)]
        for template in (*kind.title, *steps):
            template % dict.fromkeys(_places(template), "x")  # a stray % would raise here


def _places(template: str) -> list[str]:
    return [part.partition(")s")[0] for part in template.split("%(")[1:]]


def test_a_template_is_said_only_if_all_it_names_is_known() -> None:
    templates = ("%(asked)s of %(total)s", "%(asked)s")
    assert list(said_of(templates, {"asked": "1 GiB", "total": ""}, str)) == ["1 GiB"]


def test_words_are_translated_where_they_are_shown() -> None:
    kind = KINDS["module_missing"]
    values = {"module": "cv2", "package": "opencv-python"}
    assert kind.sentence(values, lambda template: template.replace("is not there", "fehlt")) == (
        "The Python module cv2 fehlt."
    )


def test_values_are_never_read_as_templates() -> None:
    assert list(said_of(("%(text)s",), {"text": "100 %(asked)s %d"}, str)) == ["100 %(asked)s %d"]


def test_what_the_cluster_reports_is_not_overruled_by_a_line() -> None:
    lines = (Line(1, "CUDA out of memory. Tried to allocate 2.50 GiB."),)
    worker = WorkerEnd("worker-0", exit_code=137, signal=9, lines=lines)
    cause = explain(Scene(code=Reason.OUT_OF_MEMORY, workers=(worker,)))
    assert cause and cause.kind == "host_out_of_memory"
    assert not cause.shows_it


def test_without_lines_the_clusters_message_is_read_but_no_line_is_named() -> None:
    worker = WorkerEnd("worker-0", exit_code=1, message="ModuleNotFoundError: No module named 'cv2'")
    cause = explain(Scene(code=Reason.NON_ZERO_EXIT, workers=(worker,)))
    assert cause and (cause.kind, cause.line) == ("module_missing", None)


def test_nothing_seen_is_unknown() -> None:
    cause = explain(Scene(code=Reason.NON_ZERO_EXIT, text="It failed."))
    assert cause and (cause.kind, cause.owner) == ("unknown", "unknown")


def test_a_success_with_a_line_or_a_point_needs_no_word() -> None:
    quick: dict[str, Any] = {"code": Reason.COMPLETED, "succeeded": True, "ran_seconds": 0.3}
    assert explain(Scene(**quick, has_points=True)) is None
    assert explain(Scene(**quick, workers=(WorkerEnd("worker-0", exit_code=0, lines=(Line(1, "done"),)),))) is None
    assert explain(Scene(**quick | {"ran_seconds": 6.0})) is None
    found = explain(Scene(**quick))
    assert found and found.kind == "did_nothing"


def test_many_that_fell_are_counted() -> None:
    workers = tuple(WorkerEnd(f"worker-{n}", exit_code=1, finished_at=float(n)) for n in range(20))
    cause = explain(Scene(code=Reason.NON_ZERO_EXIT, workers=workers))
    assert cause and (cause.worker, len(cause.others), cause.more_others) == ("worker-0", 5, 14)


@pytest.mark.parametrize("character", sorted({*string.punctuation, "a", "0", " ", "'"}))
def test_no_pattern_chokes_on_a_hostile_line(character: str) -> None:
    """A pattern that backtracks without bound takes minutes on these; the bound only ends such a test."""
    heads = (
        "",
        "ls: ",
        "HTTPSConnectionPool(host='",
        "loss ",
        "CUDA out of memory. Tried to allocate 1 GiB ",
        "Xid ",
        "sh: ",
    )
    lines = tuple(Line(n + 1, clean(head + character * 5000)) for n, head in enumerate(heads)) * 10
    began = time.process_time()
    explain(Scene(code=Reason.NON_ZERO_EXIT, workers=(WorkerEnd("worker-0", exit_code=1, lines=lines),)))
    assert time.process_time() - began < 10


PLACES = {
    "/var/lib/trainhall/cluster/alice/j-8a90-1/pods/worker-0/volumes/workspace/src/main.py": "src/main.py",
    "/workspace/main.py": "main.py",
    "/srv/my data/p-vision/j-8a90-1/pods/worker-0/volumes/workspace/main.py": "main.py",
    "/home/me/workspace/main.py": "/home/me/workspace/main.py",
    "/mnt/volumes/workspace/main.py": "/mnt/volumes/workspace/main.py",
    "/data/pods/worker-0/volumes/tmp/x.bin": "/tmp/x.bin",
}


@pytest.mark.parametrize("path", PLACES)
def test_a_path_is_told_as_whoever_wrote_the_job_knows_it(path: str) -> None:
    line = f"python: can't open file '{path}': [Errno 2] No such file or directory"
    worker = WorkerEnd("worker-0", exit_code=2, finished_at=1.0, lines=(Line(1, line),))
    cause = explain(Scene(code=Reason.NON_ZERO_EXIT, workers=(worker,)))
    assert cause is not None
    stored = cause.as_dict()
    assert stored["text"] == f"The script {PLACES[path]} is not there."
    assert f"'{PLACES[path]}'" in stored["evidence"]["text"]


@pytest.mark.parametrize("number", [9, 11, 15])
def test_the_last_line_is_the_last_one_of_the_log_also_where_the_shell_wrote_it(number: int) -> None:
    worker = WorkerEnd("worker-0", exit_code=128 + number, signal=number, lines=(Line(1, "hello"), Line(2, "Killed")))
    cause = explain(Scene(code=Reason.KILLED_BY_SIGNAL, workers=(worker,)))
    assert cause is not None
    assert (cause.line, cause.shows_it) == (Line(2, "Killed"), False)
