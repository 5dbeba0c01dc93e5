"""The template of the rows of a list, put together once for each choice of columns: fifty rows ask no cell which one it is."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings
from django.template import Engine, Template

FIRST, LAST = "_first", "_last"
LOADS = "{% load i18n rows shown %}"  # what each cell begins with, so that it can be read by itself


def rows_template(columns: tuple[str, ...]) -> Template:
    """Of `jobs`, a row each."""
    return _compiled(columns) if not settings.DEBUG else _compile(columns)


def _compile(columns: tuple[str, ...]) -> Template:
    engine = Engine.get_default()
    cells = [str(engine.get_template(f"jobs/cells/{name}.html").source) for name in (FIRST, *columns, LAST)]
    row = "".join(cell.rstrip("\n").removeprefix(LOADS) for cell in cells)
    return engine.from_string(f"{LOADS}{{% for job in jobs %}}{row}{{% endfor %}}")


_compiled = lru_cache(maxsize=200)(_compile)
