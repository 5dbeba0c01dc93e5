"""The template of a row of the list, put together once for each choice of columns: fifty rows ask no cell which one it is."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings
from django.template import Engine, Template

FIRST, LAST = "_first", "_last"


def row_template(columns: tuple[str, ...]) -> Template:
    return _compiled(columns) if not settings.DEBUG else _compile(columns)


def _compile(columns: tuple[str, ...]) -> Template:
    engine = Engine.get_default()
    cells = [engine.get_template(f"jobs/cells/{name}.html").source for name in (FIRST, *columns, LAST)]
    return engine.from_string("".join(str(cell).rstrip("\n") for cell in cells))


_compiled = lru_cache(maxsize=200)(_compile)
