"""Kubernetes quantities, as people and the API server write them."""

from __future__ import annotations

import pytest

from jobs.cluster.quantities import LARGEST, format_cpu, format_memory, parse_cpu, parse_memory


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("500m", 500),
        ("2", 2000),
        (2, 2000),
        ("0.5", 500),
        (0.5, 500),
        ("1.", 1000),
        (".25", 250),
        ("0.0001", 1),
        ("1k", 10**6),
    ],
)
def test_cpu(text: str, millis: int) -> None:
    assert parse_cpu(text) == millis


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16Gi", 16 * 2**30),
        ("512Mi", 512 * 2**20),
        ("1.5Gi", 3 * 2**29),
        ("1G", 10**9),
        ("100M", 10**8),
        ("1Ki", 1024),
        ("1000m", 1),
        (1024, 1024),
        (1e16, 10**16),
        (" 1Gi ", 2**30),
    ],
)
def test_memory(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "x", "-1", "1GB", "1 Gi", "0x10", "١٢", "nan", "inf", "1e3", "9Ei9", "1" * 5000, True, None, float("nan"), []],
)
def test_what_is_no_quantity_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match=r"quantity"):
        parse_memory(text)  # type: ignore[arg-type]


def test_too_much_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_memory("8Ei")
    with pytest.raises(ValueError, match="too large"):
        parse_memory("9" * 30 + "Ei")
    assert parse_memory(LARGEST) == LARGEST


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 16 * 2**30, 3 * 2**29, 10**9, LARGEST])
def test_memory_is_written_back_exactly(size: int) -> None:
    assert parse_memory(format_memory(size)) == size


@pytest.mark.parametrize("millis", [0, 1, 500, 1000, 1500, 64000])
def test_cpu_is_written_back_exactly(millis: int) -> None:
    assert parse_cpu(format_cpu(millis)) == millis


def test_written_as_people_do() -> None:
    assert [format_memory(16 * 2**30), format_memory(3 * 2**29), format_cpu(2000), format_cpu(500)] == [
        "16Gi",
        "1536Mi",
        "2",
        "500m",
    ]
