"""Reading a job document (DESIGN 12), JSON or YAML, into plain values; nothing is guessed (pure but for ruamel)."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from jobs.exceptions import SpecError

MAX_JSON = 24 * 2**20  # bytes; code pasted into the form travels inside
MAX_YAML = 512 * 2**10  # bytes; YAML is read slowly
MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Document:
    """A document as sent, and its values; `lines` tells where a dotted field stands (YAML only)."""

    text: str
    format: str  # json or yaml
    data: dict[str, Any]
    lines: dict[str, int]

    def without_values_of_secrets(self) -> str:
        """The text to keep: verbatim, unless a secret was typed into it, whose value then leaves it."""
        if self.data.get("secrets") == emptied(self.data.get("secrets")):
            return self.text
        copy = load_to_edit(self.text) if self.format == "yaml" else json.loads(self.text)
        empty_secrets(copy)
        if self.format == "json":
            return json.dumps(copy, ensure_ascii=False, indent=2)
        return dump_edited(copy)


def emptied(secrets: Any) -> Any:
    """Secrets by name only. Whatever stands where a value or a reference belongs may be the secret itself: people type
    `HF_TOKEN: hf_…`."""
    if not isinstance(secrets, dict):
        return None
    return {name: entry if _is_reference(entry) else {"value": ""} for name, entry in secrets.items()}


def empty_secrets(data: dict[str, Any]) -> None:
    """The same in place, so that the comments around them stay."""
    secrets = data.get("secrets")
    if not isinstance(secrets, dict):
        data.pop("secrets", None)
        return
    for name, entry in secrets.items():
        if isinstance(entry, dict) and set(entry) == {"value"}:
            entry["value"] = ""
        elif not _is_reference(entry):
            secrets[name] = {"value": ""}


def _is_reference(entry: Any) -> bool:
    """`{from: team-keys, key: wandb}`, which names a secret of the namespace."""
    return isinstance(entry, dict) and "from" in entry and set(entry) <= {"from", "key"}


def read_document(text: str, *, format: str) -> Document:  # noqa: A002 - the word of DESIGN 12
    """Decode the text. Raise SpecError with the line where it breaks."""
    if len(text.encode(errors="surrogatepass")) > (MAX_YAML if format == "yaml" else MAX_JSON):
        limit = MAX_YAML // 1024 if format == "yaml" else MAX_JSON // 1024
        raise SpecError(f"The document is larger than {limit} KiB; send the code as an upload and name its sha256.")
    data = _load_yaml(text) if format == "yaml" else _load_json(text)
    if not isinstance(data, dict):
        raise SpecError("A job document is a mapping of fields, such as {namespace: …, runtime: …, command: …}.")
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise SpecError("The document holds half a character (a lone surrogate), which no file can keep.") from error
    except TypeError as error:
        raise SpecError("The document has a field whose name is no text, such as a list.") from error
    except ValueError as error:
        raise SpecError("The document holds a number that is too large or not finite.") from error
    lines: dict[str, int] = {}
    _note_lines(data, "", lines)
    return Document(text=text, format=format, data=data, lines=lines)


def document_of(data: dict[str, Any]) -> Document:
    """A document made by us, such as from the fields of the form."""
    return Document(text=json.dumps(data, ensure_ascii=False, indent=2), format="json", data=data, lines={})


def load_to_edit(text: str) -> Any:
    """The same values, which also remember comments and quotes, to be changed and written again."""
    return _load_yaml(text, preserve_quotes=True)


def dump_edited(data: Any) -> str:
    writer = YAML()
    writer.preserve_quotes = True
    writer.width = 4096  # long lines stay as they are
    out = io.StringIO()
    writer.dump(data, out)
    return out.getvalue()


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number a job can use")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the field {key!r} stands there twice")
        found[key] = value
    return found


def _load_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_pairs)
    except json.JSONDecodeError as error:
        raise SpecError(f"Not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except (ValueError, RecursionError) as error:
        raise SpecError(f"Not a usable JSON document: {str(error)[:200]}.") from error


def _load_yaml(text: str, *, preserve_quotes: bool = False) -> Any:
    depth = 0
    reader = YAML()
    reader.preserve_quotes = preserve_quotes
    reader.allow_duplicate_keys = False
    try:
        # a look at the events first: an alias bomb or a deep nest is refused before anything is built
        for event in YAML(pure=True).parse(text):
            if isinstance(event, AliasEvent):
                raise SpecError(f"Line {event.start_mark.line + 1}: anchors and aliases are not used in job documents.")
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise SpecError(f"Line {event.start_mark.line + 1}: nested deeper than {MAX_DEPTH} levels.")
        return reader.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise SpecError(f"Not valid YAML: {where}{error.problem or error.context}.") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"Not valid YAML: {str(error)[:200]}.") from error


def _note_lines(data: Any, path: str, lines: dict[str, int]) -> None:
    if isinstance(data, CommentedSeq):
        for place, item in enumerate(data):
            if at := data.lc.item(place):  # a list that was tagged as something else has no places
                lines[f"{path}[{place}]"] = at[0] + 1
            _note_lines(item, f"{path}[{place}]", lines)
    if not isinstance(data, CommentedMap):
        return
    if data.merge:
        raise SpecError(f"Line {data.lc.line + 1}: merge keys (<<) are not used in job documents.")
    for key, value in data.items():
        dotted = f"{path}.{key}" if path else str(key)
        if at := data.lc.key(key):
            lines[dotted] = at[0] + 1
        _note_lines(value, dotted, lines)
