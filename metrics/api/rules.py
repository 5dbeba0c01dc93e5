"""REST behind the "test my line" box."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.doors.trial import try_lines

MOST_LINES = 200
MOST_RULES = 50
LONGEST_LINE = 65_536


class RuleTrial(serializers.Serializer):
    """Lines of output as a program prints them, and the metric rules of a runtime."""

    line = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        max_length=LONGEST_LINE,
        help_text="One line of output.",
    )
    lines = serializers.ListField(
        required=False,
        max_length=MOST_LINES,
        child=serializers.CharField(allow_blank=True, trim_whitespace=False, max_length=LONGEST_LINE),
    )
    rules = serializers.ListField(
        required=False, max_length=MOST_RULES, child=serializers.JSONField(), help_text="[{pattern, group}]"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("line" in attrs) == ("lines" in attrs):
            raise ValidationError({"lines": [_("send either line or lines")]})
        return attrs


class RuleTestView(APIView):
    @extend_schema(
        operation_id="metric_rules_test",
        request=RuleTrial,
        responses={200: OpenApiResponse(OpenApiTypes.OBJECT), 400: OpenApiResponse(OpenApiTypes.OBJECT)},
    )
    def post(self, request: Request) -> Response:
        """Which metrics the portal would read from these lines, by what, and what is wrong with the rules. Stores nothing."""
        asked = RuleTrial(data=request.data)
        asked.is_valid(raise_exception=True)
        sent = asked.validated_data
        lines = sent["lines"] if "lines" in sent else [sent["line"]]
        return Response(_in_words(try_lines(lines, sent.get("rules", []))))


def _in_words(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The answer with a sentence for each code."""
    why = {"denied": _("a word like this is never a metric; a rule may name it otherwise")}
    wrong = {
        "no_rule": _("a rule is {pattern: …, group: …}"),
        "no_metric": _("the pattern names no metric; write one as (?P<loss>[0-9.]+)"),
    }
    return {
        **found,
        "ignored": [{**one, "why": why[one["why"]]} for one in found["ignored"]],
        "errors": [{"rule": one["rule"], "message": wrong.get(one["code"]) or one["said"]} for one in found["errors"]],
    }
