"""A parameter reaches the program exactly as it is, wherever in the command it stands, or its place is named as wrong."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jobs.quoting import fill_in, places, text_of

HOSTILE = [
    "1e-4",
    "a b",
    "$(id)",
    "`id`",
    "'; exit 9 #",
    '"; exit 9 #',
    "two\nlines\n",
    "\\",
    "-n",
    "*",
    "~",
    "",
    "学習率 ８ 🦊",
    "{{x}}",
    "$HOME ${HOME}",
    "!history",
    "%s\\n",
]
SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]
COMMANDS = [
    "printf '%s|' {{x}} end",
    'printf "%s|" "{{x}}" end',
    "printf '%s|' '{{ x }}' end",
    "printf '%s|' \"$(printf '%s' '' )\"{{x}} end",
    "printf '%s|' {{x}} end # {{x}} is not a value here",
    "X={{x}}\nprintf '%s|' \"$X\" end",
    "(printf '%s|' {{x}} end)",
    "cat <<EOF >/dev/null\nit's \"text\nEOF\nprintf '%s|' {{x}} end",
    "printf '%s|' \"it's\"{{x}} end | sed \"s/^it's//\"",
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("value", HOSTILE)
def test_the_program_receives_exactly_the_value(shell: str, command: str, value: str) -> None:
    done = subprocess.run([shell, "-c", fill_in(command, {"x": value})], capture_output=True, check=False, timeout=10)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == f"{value}|end|"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo `ls {{x}}`", "backticks"),
        ("echo ${A:-{{x}}}", "inside \\$"),
        ("echo $(( {{x}} + 1 ))", "inside \\$"),
        ("cat <<EOF\n{{x}}\nEOF", "here-document"),
        ("cat <<-'EOF'\n\t{{x}}\n\tEOF\necho", "here-document"),
        ("echo $'a\\'b' {{x}}", "read differently"),
        ('echo "${A:-it\'s}" {{x}}', "inside"),
        ('echo "$(case a in a) echo {{x}};; esac)"', "read differently"),
        ("cat <<\\EOF\n'\nEOF\necho {{x}}", "read differently"),
    ],
)
def test_where_no_quoting_is_safe_the_place_is_named(command: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fill_in(command, {"x": "$(id)"})


def test_behind_a_backslash_and_in_a_comment_it_is_text() -> None:
    assert places("echo \\{{x}} # {{y}}\n") == []
    assert fill_in("echo \\{{x}}", {}) == "echo \\{{x}}"
    assert [place.name for place in places("a {{ lr }} {{b}}")] == ["lr", "b"]


def test_true_is_written_as_one_writes_it() -> None:
    assert [text_of(value) for value in (True, False, 1, 0.5, "x")] == ["true", "false", "1", "0.5", "x"]
