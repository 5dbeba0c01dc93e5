"""A pasted .env file as names and values, the way the usual tools read it (pure)."""

from __future__ import annotations

import re

from jobs.exceptions import SpecError

LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*(.*)", re.S)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def read_dotenv(text: str) -> dict[str, str]:
    """Raise SpecError naming the first line that is no NAME=value."""
    found: dict[str, str] = {}
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        number, line = at + 1, lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise SpecError(f"line {number} is not NAME=value", fields={"env": [f"line {number} is not NAME=value"]})
        name, value = match.groups()
        quote = value[:1]
        if quote in ("'", '"'):
            # a value in quotes may go on over several lines
            while not _closed(value, quote) and at < len(lines):
                value, at = f"{value}\n{lines[at]}", at + 1
            if not _closed(value, quote):
                raise SpecError(
                    f"line {number}: the quote is never closed", fields={"env": [f"line {number}: no closing quote"]}
                )
            inner = value[1 : _end(value, quote)]
            found[name] = _unescaped(inner) if quote == '"' else inner
        else:
            found[name] = re.split(r"(?:^|\s)#", value, maxsplit=1)[0].strip()
    return found


def _end(value: str, quote: str) -> int:
    at = 1
    while at < len(value):
        if value[at] == "\\" and quote == '"':
            at += 1
        elif value[at] == quote:
            return at
        at += 1
    return -1


def _closed(value: str, quote: str) -> bool:
    return _end(value, quote) > 0


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match.group(1), match.group(0)), text, flags=re.S)
