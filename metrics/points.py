"""The wire format of points: limits first, then a verdict for each point (pure).

Most batches are well formed and are decoded and checked as whole columns. Whatever is not goes once more through the
forgiving decoder and is judged point by point, so that one bad point costs itself and not its batch.
"""

from __future__ import annotations

import json
import zlib
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import numpy as np

from metrics.batches import (
    LAST_RANK,
    LAST_STEP,
    LAST_TIME,
    MAX_BYTES,
    MAX_POINTS,
    Batch,
    bad_json,
    too_large,
)
from metrics.judging import (
    add_distributions,
    check_size,
    group_of,
    is_count,
    judge_series,
    name_is_good,
    progress_of,
    refuse_surplus,
    refuse_time,
)
from metrics.packed import Series
from metrics.sources import SDK, SOURCES

# more commas than this cannot be 100,000 points with step, time and value: refused before anything is built from them
MAX_COMMAS = 4 * MAX_POINTS
_DIGITS = 400  # an integer of more digits than this is beyond float64 anyway


class _Columns(msgspec.Struct):
    key: str
    step: list[Annotated[int, msgspec.Meta(ge=0, le=LAST_STEP)]]
    value: list[float | Literal["NaN", "Infinity", "-Infinity"] | None]
    time: list[float | None] | None = None
    group: str | None = None


class _Envelope(msgspec.Struct):
    batch: str
    attempt: int | None = None
    rank: int = 0
    series: list[_Columns] = []
    distributions: list[Any] = []
    progress: Any = None
    source: Any = SDK


_strict = msgspec.json.Decoder(_Envelope)


def read(body: bytes, *, now: float) -> Batch:
    """Decode and judge a request. Raise IngestRefused where all of it is refused; `now` fills in for missing times."""
    if len(body) > MAX_BYTES:
        raise too_large(f"A batch has at most {MAX_BYTES // 2**20} MiB when decompressed.")
    if len(body) > 2**19 and body.count(b",") > MAX_COMMAS:
        raise too_large(f"A batch has at most {MAX_POINTS:,} points.")
    try:
        envelope = _strict.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _judge(_forgiving(body), now)
    batch = _opened(envelope.batch, envelope.attempt, envelope.rank, envelope.source)
    check_size(sum(max(len(one.step), len(one.value)) for one in envelope.series) + len(envelope.distributions))
    for one in envelope.series:
        group = one.group if one.group is not None else group_of(one.key)
        if name_is_good(batch, one.key, group, max(len(one.step), len(one.value))):
            _add_columns(batch, one, group, now)
    add_distributions(batch, envelope.distributions, now)
    batch.progress = progress_of(batch, envelope.progress)
    return batch


def _forgiving(body: bytes) -> dict[str, Any]:
    """The same bytes through the standard library, which takes NaN, Infinity and numbers of any size."""
    try:
        data = json.loads(body.decode(), parse_int=_integer)
    except UnicodeDecodeError as error:
        raise bad_json(f"The body is not UTF-8: byte {error.start}.") from error
    except json.JSONDecodeError as error:
        raise bad_json(f"Not valid JSON: {error.msg} at byte {error.pos}.") from error
    except RecursionError as error:
        raise bad_json("The JSON is nested too deeply.") from error
    if not isinstance(data, dict):
        raise bad_json("A batch is an object with batch, rank and series.")
    return data


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _DIGITS else float(digits)


def _opened(batch: Any, attempt: Any, rank: Any, source: Any) -> Batch:
    try:
        batch_id = UUID(batch)
    except (ValueError, AttributeError, TypeError) as error:
        raise bad_json("batch must be a UUID, made anew for each batch and kept when it is sent again.") from error
    if attempt is not None and not is_count(attempt, LAST_RANK):
        raise bad_json("attempt must be a whole number.")
    if not is_count(rank, LAST_RANK):
        raise bad_json("rank must be a whole number from 0.")
    if source not in SOURCES:
        raise bad_json(f"source must be one of {', '.join(SOURCES)}.")
    return Batch(id=batch_id, attempt=attempt, rank=rank, source=source)


def _add_columns(batch: Batch, one: _Columns, group: str, now: float) -> None:
    """A series whose types the decoder has checked: columns at once, point by point only where a time is beyond use."""
    count = min(len(one.step), len(one.value))
    refuse_surplus(batch, one.key, one.step, one.value, count)
    step = np.array(one.step[:count], dtype=np.int64)
    value = np.array(one.value[:count], dtype=np.float64)  # the three words, and None as NaN
    if one.time is None:
        time = np.full(count, now)
    else:
        time = np.array(one.time[:count], dtype=np.float64)
        missing = np.isnan(time)
        if missing.any():
            time[missing] = now
        if len(time) < count:
            time = np.concatenate([time, np.full(count - len(time), now)])
        good = (time >= 0) & (time <= LAST_TIME)
        if not good.all():
            for index in np.flatnonzero(~good).tolist():
                refuse_time(batch, one.key, int(step[index]), index)
            step, time, value = step[good], time[good], value[good]
    if len(step):
        batch.series.append(Series(one.key, group, step, time, value))


def _judge(data: dict[str, Any], now: float) -> Batch:
    """A request that is not well formed somewhere: each part for itself."""
    batch = _opened(data.get("batch"), data.get("attempt"), data.get("rank", 0), data.get("source", SDK))
    series = [] if data.get("series") is None else data["series"]
    distributions = [] if data.get("distributions") is None else data["distributions"]
    if not isinstance(series, list):
        raise bad_json("series must be a list.")
    if not isinstance(distributions, list):
        raise bad_json("distributions must be a list.")
    columns = [one.get(name) for one in series if isinstance(one, dict) for name in ("step", "value")]
    pairs = zip(columns[::2], columns[1::2], strict=True)
    check_size(
        sum(max(len(pair) if isinstance(pair, list) else 1 for pair in both) for both in pairs) + len(distributions)
    )
    for one in series:
        judge_series(batch, one, now)
    add_distributions(batch, distributions, now)
    batch.progress = progress_of(batch, data.get("progress"))
    return batch


class Inflater:
    """gzip, piece by piece: a bomb is noticed at the limit, not after it."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)
        self._room = MAX_BYTES

    def feed(self, piece: bytes) -> bytes:
        """What these bytes decompress to. Raise IngestRefused where they are no gzip or too much."""
        out: list[bytes] = []
        while piece:
            try:
                plain = self._stream.decompress(piece, self._room + 1)
            except zlib.error as error:
                raise bad_json(f"The body is not valid gzip: {error}.") from error
            self._room -= len(plain)
            if self._room < 0:
                raise too_large(f"A batch has at most {MAX_BYTES // 2**20} MiB when decompressed.")
            out.append(plain)
            piece = self._stream.unconsumed_tail
            if self._stream.eof and self._stream.unused_data:
                raise bad_json("Bytes follow the end of the gzip stream.")
        return b"".join(out)

    def finish(self) -> None:
        if not self._stream.eof:
            raise bad_json("The gzip stream ends too early.")
