"""The one error shape of REST: {"error": {"code", "message", "fields"}}.

Lower apps reach this by dotted path in the settings only.
"""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from jobs.exceptions import ClusterUnavailable, JobError

logger = logging.getLogger(__name__)


def error(code: str, message: str, *, http_status: int, fields: dict[str, list[str]] | None = None) -> Response:
    return Response({"error": {"code": code, "message": message, "fields": fields or {}}}, status=http_status)


def flatten(detail: Any, path: str = "") -> dict[str, list[str]]:
    """DRF's nested error details as {dotted field: [messages]}."""
    if isinstance(detail, dict):
        found: dict[str, list[str]] = {}
        for key, value in detail.items():
            found.update(flatten(value, f"{path}.{key}" if path else str(key)))
        return found
    if isinstance(detail, list) and any(isinstance(item, dict | list) for item in detail):
        found = {}
        for index, value in enumerate(detail):
            found.update(flatten(value, f"{path}[{index}]"))
        return found
    return {path: [str(item) for item in (detail if isinstance(detail, list) else [detail])]}


def error_response(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Turn what a view raised into the one error shape; None means a bug of ours, which becomes a 500."""
    set_rollback()
    match exc:
        case JobError():
            response = error(exc.code, exc.message, http_status=exc.http_status, fields=exc.fields)
            if isinstance(exc, ClusterUnavailable) and exc.retry_after is not None:
                response["Retry-After"] = str(int(exc.retry_after) + 1)
            return response
        case Http404() | exceptions.NotFound():
            # the same words for what does not exist and for what is not yours
            return error("not_found", _("There is nothing here for you."), http_status=status.HTTP_404_NOT_FOUND)
        case PermissionDenied():
            return error("not_allowed", str(exc) or _("Not allowed."), http_status=status.HTTP_403_FORBIDDEN)
        case RequestDataTooBig():
            return error("too_large", str(exc), http_status=status.HTTP_413_REQUEST_ENTITY_TOO_LARGE)
        case exceptions.ValidationError():
            fields = flatten(exc.detail)
            message = next((f"{name}: {texts[0]}" if name else texts[0] for name, texts in fields.items()), "")
            return error("invalid", message, http_status=exc.status_code, fields=fields)
        case exceptions.APIException():
            codes = exc.get_codes()
            response = error(
                codes if isinstance(codes, str) else "invalid", str(exc.detail), http_status=exc.status_code
            )
            if header := getattr(exc, "auth_header", None):
                response["WWW-Authenticate"] = header
            if wait := getattr(exc, "wait", None):
                response["Retry-After"] = str(int(wait) + 1)
            return response
    logger.error("Unhandled error in %s", context.get("view"), exc_info=exc)
    return None
