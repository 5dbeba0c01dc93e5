"""Plain values as YAML for people to read (pure)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import LiteralScalarString

from jobs.reading import dump_edited, load_to_edit, read_document


def to_yaml(documents: Sequence[Any]) -> str:
    """Several documents as one text, long texts as blocks."""
    writer = YAML()
    writer.default_flow_style = False
    writer.width = 120
    out = io.StringIO()
    for index, document in enumerate(documents):
        if index:
            out.write("---\n")
        writer.dump(_readable(document), out)
    return out.getvalue()


def merged(text: str, data: dict[str, Any]) -> str:
    """A person's own YAML brought to these values: comments, order and what is unchanged stay. Raise SpecError."""
    read_document(text, format="yaml")
    document = load_to_edit(text)
    before = plain_copy(document)
    _bring_to(document, data)
    if plain_copy(document) == before:
        return text
    return dump_edited(document)


def _bring_to(there: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in [name for name in there if name not in wanted]:
        del there[name]
    for name, value in wanted.items():
        if isinstance(value, dict) and isinstance(there.get(name), CommentedMap):
            _bring_to(there[name], value)
        elif name not in there or not _means_the_same(there[name], value):
            there[name] = _readable(value)


def _means_the_same(old: Any, new: Any) -> bool:
    """A form knows texts only: 4 and "4" are one, and stay as the person wrote them."""
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_means_the_same, old, new))
    if isinstance(old, bool) or isinstance(new, bool):
        return str(old).lower() == str(new).lower()
    return old == new or (not isinstance(old, dict | list) and str(old) == str(new))


def plain_copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain_copy(inner) for name, inner in value.items()}
    return [plain_copy(inner) for inner in value] if isinstance(value, list) else value


def _readable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(inner) for inner in value]
    if isinstance(value, str) and "\n" in value:
        return LiteralScalarString(value)
    return value
