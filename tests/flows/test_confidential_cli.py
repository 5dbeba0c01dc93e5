"""A9 at the command line: what a stranger asks of a confidential project reads as what is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accounts import tokens
from accounts.models import User
from tests.flows.hidden_project import MADE_UP, MARK, SLUG, Hidden
from tests.portal.running import CHECKOUT

COMMANDS = (
    "ps -n {name}",
    "ps -a -n {name}",
    "show {job}",
    "why {job}",
    "logs {job}",
    "files {job}",
    "stop {job}",
    "hold {job}",
    "clone {job}",
    "quota -n {name}",
    "submit -n {name} --runtime shell -- true",
    "submit -n {name} --runtime shell --explain -- true",
)
PLAIN = ("ps", "ps -a", "gpus", "quota")


@pytest.mark.django_db(transaction=True)
def test_the_command_line_tells_a_stranger_nothing(
    own: dict[str, str], hidden: Hidden, dave: User, live_server: Any, tmp_path: Path
) -> None:
    _token, text = tokens.issue(dave, name="cli", scope="admin", days=1)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(CHECKOUT / "sdk"),
        "HOME": str(tmp_path),
        "TRAINHALL_URL": live_server.url,
        "TRAINHALL_API_TOKEN": text,
    }

    def run(words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "trainhall", *words.split()],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    wrong = []
    for command in COMMANDS:
        real = {"name": SLUG, "job": hidden.running.pk}
        fake = {"name": SLUG.replace(MARK, MADE_UP), "job": "zzzzzzzzzz"}
        answers = []
        for typed in (real, fake):
            code, told = run(command.format(**typed))
            for value in typed.values():
                told = told.replace(value, "<typed>")
            answers.append((code, told))
        if answers[0] != answers[1] or MARK in answers[0][1]:
            wrong.append(f"{command}: {answers[0]} is not {answers[1]}")
    for words in (*PLAIN, f"show {own['job_id']}", f"why {own['job_id']}"):
        code, told = run(words)
        if code or MARK in told:
            wrong.append(f"{words}: {code} {told[:300]}")
    assert not wrong
