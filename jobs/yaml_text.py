"""Plain values as YAML for people to read (pure)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString


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


def _readable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(inner) for inner in value]
    if isinstance(value, str) and "\n" in value:
        return LiteralScalarString(value)
    return value
