"""Job documents as people hand them over: a dict, a JSON file, or a YAML file, which is sent as it is."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional

from trainhall.errors import TrainhallError

PLACEHOLDER = re.compile(r"(\{\{[^{}]*\}\})")


class Document(NamedTuple):
    """A document ready to send: `data` where we can read it, else the text of a YAML file."""

    data: Optional[Dict[str, Any]]
    text: str = ""

    @property
    def content_type(self) -> str:
        return "application/yaml" if self.data is None else "application/json"

    def encode(self) -> bytes:
        return self.text.encode() if self.data is None else json.dumps(self.data).encode()

    def with_code(self, code: Dict[str, Any]) -> "Document":
        """The same document with this code. Raise TrainhallError where it names code already."""
        has_code = (
            "code" in self.data if self.data is not None else re.search(r"^[\"']?code[\"']?\s*:", self.text, re.M)
        )
        if has_code:
            raise TrainhallError("two_codes", "The document has `code` already; take it out or leave out --code.")
        if self.data is not None:
            return Document({**self.data, "code": code})
        return Document(None, "{}\ncode: {}\n".format(self.text.rstrip("\n"), _flow(code)))


def read_document(path: str) -> Document:
    """A JSON document is read; anything else is taken for YAML, which the portal reads."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise TrainhallError("bad_document", "{} cannot be read: {}".format(path, error)) from None
    if path.endswith(".json") or text.lstrip().startswith("{"):
        try:
            data = json.loads(text)
        except ValueError as error:
            if path.endswith(".json"):
                raise TrainhallError("bad_document", "{} is not valid JSON: {}".format(path, error)) from None
            return Document(None, text)
        if not isinstance(data, dict):
            raise TrainhallError("bad_document", "{} must hold one job document.".format(path))
        return Document(data)
    return Document(None, text)


def read_files(paths: List[str]) -> Dict[str, str]:
    """Text files by their names, for `code.files`."""
    files: Dict[str, str] = {}
    for path in paths:
        name = os.path.basename(path)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            raise TrainhallError("not_text", "{} is not a text file; send its folder instead.".format(path)) from None
        except OSError as error:
            raise TrainhallError("bad_code", "{} cannot be read: {}".format(path, error.strerror)) from None
        if name in files:
            raise TrainhallError("bad_code", "Two files are called {}; send their folder instead.".format(name))
        files[name] = text
    return files


def command_of(words: List[str]) -> str:
    """The words after `--` as one line for the shell; {{parameters}} stay, the portal quotes what it puts there."""
    if len(words) == 1:
        return words[0]
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    import shlex

    parts = PLACEHOLDER.split(word)
    if len(parts) == 1:
        return shlex.quote(word)
    return "".join(part if index % 2 else shlex.quote(part) if part else "" for index, part in enumerate(parts))


def _flow(value: Any) -> str:
    """JSON that is YAML as well: characters above U+FFFF as one escape, not as the two halves that JSON makes of them."""

    def joined(match: "re.Match[str]") -> str:
        if not match.group(1):
            return match.group()
        high, low = int(match.group(1), 16), int(match.group(2), 16)
        return "\\U{:08X}".format(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))

    # an escaped backslash is consumed first, so that `\\\\ud83d`, which is text, stays
    return re.sub(r"\\\\|\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", joined, json.dumps(value))
