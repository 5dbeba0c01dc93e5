"""What routes there are, read from the URL resolver itself and not from any list."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from metrics import topics
from metrics.ingest_asgi import BARE_ROUTES
from portal.asgi import websocket_urlpatterns

ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ANY = "ANY"  # a view that says nothing about methods takes all of them: the matrix refuses to list that


def http_routes() -> dict[str, set[str]]:
    """Each path pattern with the methods its view takes; HEAD and OPTIONS go with GET."""
    found: dict[str, set[str]] = {}
    for path, view in _walk(get_resolver().url_patterns, "/"):
        found.setdefault(path, set()).update(methods_of(view))
    return found


def methods_of(view: Callable[..., Any]) -> set[str]:
    cls = getattr(view, "view_class", None) or getattr(view, "cls", None)
    if cls is not None:
        actions = getattr(view, "actions", None)
        names = actions if actions else [method for method in cls.http_method_names if hasattr(cls, method)]
        return {name.upper() for name in names} & set(ALL_METHODS)
    function: Any = view
    while function is not None:
        code = getattr(function, "__code__", None)
        if code is not None and "request_method_list" in code.co_freevars:  # require_http_methods
            cell = function.__closure__[code.co_freevars.index("request_method_list")]
            return set(cell.cell_contents) & set(ALL_METHODS)
        function = getattr(function, "__wrapped__", None)
    return {ANY}


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, path)
        else:
            yield plain(path), pattern.callback


def plain(path: str) -> str:
    """Every kind of pattern written alike: `jobs/<str:job_id>/` and `^jobs/(?P<job_id>[0-9a-z]+)/$` are `jobs/<job_id>/`."""
    path = re.sub(r"<\w+:(\w+)>", r"<\1>", path)
    return re.sub(r"\(\?P<(\w+)>[^()]*\)", r"<\1>", path).replace("^", "").removesuffix("$")


def socket_routes() -> set[str]:
    return {plain(f"/{pattern.pattern}") for pattern in websocket_urlpatterns}


def topic_kinds() -> set[str]:
    """Every word that the reader of topics compares a part of the name with."""
    tree = ast.parse(inspect.getsource(topics.parse))
    return {
        node.value
        for compare in ast.walk(tree)
        if isinstance(compare, ast.Compare)
        for node in ast.walk(compare)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def bare_routes() -> dict[str, set[str]]:
    return {plain(path): set(methods) for path, methods, _rule in BARE_ROUTES}
