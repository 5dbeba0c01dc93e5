"""The parent of a job on its pages: one line of a template shows it, to who may see it."""

from __future__ import annotations

from typing import Any

from django import template

from jobs import lineage as lines
from jobs.models import Job

register = template.Library()


@register.inclusion_tag("jobs/_lineage.html", takes_context=True)
def lineage(context: dict[str, Any], job: Job) -> dict[str, Any]:
    """Nothing for a job that is no clone, or whose parent the person may not see."""
    parent = lines.visible_parent(job, context["request"].user)
    return {"parent": parent, "changes": lines.changes_of(job, parent) if parent else []}
