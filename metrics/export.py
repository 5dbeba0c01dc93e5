"""All stored points of a job as a file, exactly as they are stored, made piece by piece: no length of a job takes more memory.

One row per point, one series after the other, each in order of step. Floats are written so that reading them gives the same
number; what is not finite is a word in text, and itself in Parquet.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Protocol

import orjson
from asgiref.sync import sync_to_async

from metrics import pages, store
from metrics.chunks import FULL, Run
from metrics.documents import gap_document, numbers
from metrics.rows import Gap, SeriesId

COLUMNS = ("key", "rank", "attempt", "step", "time", "value")
ROWS_AT_ONCE = 4096  # lines of one piece of text
POINTS = pages.PAGE * FULL  # of a page


class Writer(Protocol):
    def head(self) -> bytes: ...
    def rows(self, series: SeriesId, run: Run) -> Iterator[bytes]: ...
    def gap(self, series: SeriesId, gap: Gap) -> bytes: ...
    def foot(self) -> bytes: ...


class CsvWriter:
    content_type = "text/csv; charset=utf-8"
    ending = "csv"

    def head(self) -> bytes:
        return (",".join(COLUMNS) + "\r\n").encode()

    def rows(self, series: SeriesId, run: Run) -> Iterator[bytes]:
        for part in _parts(run):
            out = io.StringIO()
            writer = csv.writer(out)
            for row in zip(part.step.tolist(), part.time.tolist(), numbers(part.value), strict=True):
                writer.writerow([*series, *row])
            yield out.getvalue().encode()

    def gap(self, series: SeriesId, gap: Gap) -> bytes:
        """A row whose value is a sentence: whoever reads numbers notices."""
        out = io.StringIO()
        csv.writer(out).writerow([*series, "", "", gap.text])
        return out.getvalue().encode()

    def foot(self) -> bytes:
        return b""


class LinesWriter:
    """One JSON object a line."""

    content_type = "application/x-ndjson"
    ending = "jsonl"

    def head(self) -> bytes:
        return b""

    def rows(self, series: SeriesId, run: Run) -> Iterator[bytes]:
        named = series._asdict()
        for part in _parts(run):
            yield b"".join(
                orjson.dumps({**named, "step": step, "time": time, "value": value}) + b"\n"
                for step, time, value in zip(part.step.tolist(), part.time.tolist(), numbers(part.value), strict=True)
            )

    def gap(self, series: SeriesId, gap: Gap) -> bytes:
        return orjson.dumps({**series._asdict(), "gap": gap_document(gap)}) + b"\n"

    def foot(self) -> bytes:
        return b""


class ParquetWriter:
    content_type = "application/vnd.apache.parquet"
    ending = "parquet"

    def __init__(self) -> None:
        # an extra, which a portal may lack
        pyarrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
        self._arrow = pyarrow
        self._out = io.BytesIO()
        self._gaps: list[dict[str, Any]] = []
        self._schema = pyarrow.schema(
            [
                ("key", pyarrow.string()),
                ("rank", pyarrow.int32()),
                ("attempt", pyarrow.int32()),
                ("step", pyarrow.int64()),
                ("time", pyarrow.float64()),
                ("value", pyarrow.float64()),
            ]
        )
        self._file = parquet.ParquetWriter(pyarrow.PythonFile(_Forward(self._out), mode="w"), self._schema)

    def head(self) -> bytes:
        return self._taken()

    def rows(self, series: SeriesId, run: Run) -> Iterator[bytes]:
        count = len(run)
        columns: Iterable[Any] = (
            self._arrow.array([series.key] * count, self._arrow.string()),
            self._arrow.array([series.rank] * count, self._arrow.int32()),
            self._arrow.array([series.attempt] * count, self._arrow.int32()),
            self._arrow.array(run.step),
            self._arrow.array(run.time),
            self._arrow.array(run.value),
        )
        self._file.write_table(self._arrow.Table.from_arrays(list(columns), schema=self._schema))
        yield self._taken()

    def gap(self, series: SeriesId, gap: Gap) -> bytes:
        """Its columns hold numbers only: told in the metadata of the file, as JSON under `trainhall.gaps`."""
        self._gaps.append({**series._asdict(), "gap": gap_document(gap)})
        return b""

    def foot(self) -> bytes:
        if self._gaps:
            self._file.add_key_value_metadata({"trainhall.gaps": orjson.dumps(self._gaps).decode()})
        self._file.close()
        return self._taken()

    def _taken(self) -> bytes:
        piece = self._out.getvalue()
        self._out.seek(0)
        self._out.truncate()
        return piece


class _Forward(io.RawIOBase):
    """A file that is only written to the end of, and emptied in between: it knows where it stands by itself."""

    def __init__(self, out: io.BytesIO) -> None:
        super().__init__()
        self._out = out
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._out.write(piece)
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at


WRITERS: dict[str, Callable[[], CsvWriter | LinesWriter | ParquetWriter]] = {
    "csv": CsvWriter,
    "json-lines": LinesWriter,
    "parquet": ParquetWriter,
}


def has_parquet() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def _parts(run: Run) -> Iterator[Run]:
    for start in range(0, len(run), ROWS_AT_ONCE):
        yield run.part(start, start + ROWS_AT_ONCE)


async def body(
    job_id: str, writer: Writer, *, takes: Callable[[dict[str, Any]], bool], part: Callable[[Run], Run]
) -> AsyncIterator[bytes]:
    """The file. `takes` chooses series by their summary, `part` points."""
    yield writer.head()
    left = [
        (SeriesId(one["key"], one["rank"], one["attempt"]), one["count"])
        for one in await sync_to_async(store.list_series)(job_id)
        if takes(one)
    ]
    after = pages.BEFORE_ALL
    while left:
        page = await sync_to_async(pages.page)(job_id, _of_a_page(left), after=after)
        for name, run, gaps in page.runs:
            for gap in gaps:
                yield writer.gap(name, gap)
            if len(chosen := part(run)):
                for piece in await sync_to_async(_rows)(writer, name, chosen):
                    yield piece
        after = page.upto if page.goes_on else pages.BEFORE_ALL
        left = left[len(page.runs) - page.goes_on :]
    yield await sync_to_async(writer.foot)()


def _of_a_page(left: Sequence[tuple[SeriesId, int]]) -> list[SeriesId]:
    """The first of these series, as many as have the points of a page."""
    points = accumulate(count for _name, count in left)
    return [name for (name, _count), upto in zip(left, points, strict=True) if upto <= POINTS] or [left[0][0]]


def _rows(writer: Writer, name: SeriesId, run: Run) -> list[bytes]:
    return list(writer.rows(name, run))
