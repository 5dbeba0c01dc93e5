"""Kubernetes quantities: `500m` of a CPU, `16Gi` of memory. Read into whole thousandths and bytes, and written back."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

LARGEST = 2**63 - 1  # what a database column and the API server can hold

_QUANTITY = re.compile(r"([0-9]{1,30}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(m|[kMGTPE]i?|Ki)?")
_FACTORS = {
    "m": Decimal("0.001"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}


def parse_cpu(text: str | int | float) -> int:
    """Thousandths of a CPU, rounded up as Kubernetes does: `"500m"` is 500, `2` is 2000."""
    return _parse(text, factor=1000, example="500m, 2 or 0.5")


def parse_memory(text: str | int | float) -> int:
    """Bytes, rounded up as Kubernetes does: `"16Gi"` is 17179869184."""
    return _parse(text, factor=1, example="512Mi or 16Gi")


def parse_count(text: str | int | float) -> int:
    """A whole number, such as GPUs."""
    return _parse(text, factor=1, example="1 or 8")


def format_cpu(millis: int) -> str:
    return f"{millis}m" if millis % 1000 else str(millis // 1000)


def format_memory(size: int) -> str:
    """The largest binary unit that keeps the number whole."""
    for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        factor = int(_FACTORS[unit])
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _parse(text: str | int | float, *, factor: int, example: str) -> int:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"A quantity such as {example} is needed.")
    written = str(text).strip()
    if "e" in written and isinstance(text, float):
        written = format(Decimal(written), "f")  # 1e+16, as Python writes large floats
    match = _QUANTITY.fullmatch(written)
    if match is None:
        raise ValueError(f"{written[:40]!r} is not a quantity; write it like {example}.")
    number, unit = match.groups()
    value = Decimal(number) * (_FACTORS[unit] if unit else 1) * factor
    rounded = int(value.to_integral_value(rounding=ROUND_CEILING))
    if rounded > LARGEST:
        raise ValueError(f"{written[:40]!r} is too large.")
    return rounded
