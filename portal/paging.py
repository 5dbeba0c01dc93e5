"""Cursor paging for REST lists."""

from __future__ import annotations

from typing import Any

from rest_framework.pagination import CursorPagination
from rest_framework.response import Response


class NewestFirst(CursorPagination):
    """`{results, next, previous}`, newest first; `limit` at most 200."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering: tuple[str, ...] = ("-created_at", "-id")

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self.get_next_link(), "previous": self.get_previous_link()})
