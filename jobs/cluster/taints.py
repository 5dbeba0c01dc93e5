"""Which nodes a cluster keeps from pods that do not say they may go there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.cluster.port import Manifest

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS = ("Equal", "Exists")


def first_not_tolerated(taints: Sequence[Manifest], tolerations: Sequence[Manifest]) -> Manifest:
    """The first taint that keeps pods with these tolerations from a node, as the scheduler decides it; {} where none does."""
    strict = (taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute"))
    return next((taint for taint in strict if not any(_tolerates(one, taint) for one in tolerations)), {})


def _tolerates(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or (bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or ""))


def problem_of(toleration: Any) -> str:
    """Why Kubernetes would refuse a toleration, in words; "" where it would not."""
    if not isinstance(toleration, dict) or not toleration:
        return f"must be fields, such as `key: nvidia.com/gpu, operator: Exists`, not {toleration!r}"
    if unknown := sorted(set(map(str, toleration)) - {"key", "operator", "value", "effect", "tolerationSeconds"}):
        return f"knows no field {unknown[0]}"
    if toleration.get("operator", "Equal") not in OPERATORS:
        return f"has an operator that is neither Equal nor Exists: {toleration['operator']!r}"
    if toleration.get("effect", EFFECTS[0]) not in EFFECTS:
        return f"has an effect that is none of {', '.join(EFFECTS)}: {toleration['effect']!r}"
    if not toleration.get("key") and toleration.get("operator") != "Exists":
        return "without a key needs `operator: Exists`"
    if toleration.get("operator") == "Exists" and toleration.get("value"):
        return "with `operator: Exists` takes no value"
    return ""
