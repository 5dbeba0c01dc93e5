"""What every page's frame shows: where one is, and the namespaces one may use."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


def navigation(request: HttpRequest) -> dict[str, Any]:
    return {}
