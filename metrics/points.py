"""The wire format of points: limits first, then a verdict for each point (pure).

Most batches are well formed and are decoded and checked as whole columns. Whatever is not goes once more through the
forgiving decoder and is judged point by point, so that one bad point costs itself and not its batch.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import numpy as np

from metrics.packed import Floats, Series
from metrics.sources import SDK, SOURCES
from metrics.spelling import WORDS

MAX_BYTES = 8 * 2**20  # decompressed
MAX_POINTS = 100_000  # in one request
MAX_BINS = 4096  # of one distribution
MAX_LISTED = 100  # refusals that are named in an answer
# more commas than this cannot be 100,000 points with step, time and value: refused before anything is built from them
MAX_COMMAS = 4 * MAX_POINTS
LAST_STEP = 2**63 - 1
LAST_RANK = 2**31 - 1
LAST_TIME = 253_402_300_799.0  # the end of year 9999: what clients can show as a date
NAME_LENGTH = 200

_BAD_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DIGITS = 400  # an integer of more digits than this is beyond float64 anyway


class IngestRefused(Exception):
    """The whole request is refused and nothing of it is stored."""

    def __init__(self, http_status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.code = code
        self.message = message


def bad_json(message: str) -> IngestRefused:
    return IngestRefused(400, "bad_json", message)


def too_large(message: str) -> IngestRefused:
    return IngestRefused(413, "too_large", message)


@dataclass(slots=True)
class Refusals:
    """What was not stored: all counted, the first hundred named."""

    listed: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def add(
        self, key: Any, code: str, message: str, *, step: Any = None, index: int | None = None, points: int = 1
    ) -> None:
        self.count += max(points, 1)
        if len(self.listed) < MAX_LISTED:
            step = step if isinstance(step, int) and abs(step) < 2**63 else None
            self.listed.append({"key": printable(key), "step": step, "index": index, "code": code, "message": message})


@dataclass(slots=True)
class Distribution:
    key: str
    of: str
    step: int
    time: float
    edges: Floats
    counts: Floats
    nan: int
    inf: int


@dataclass(slots=True)
class Batch:
    """What is left of a request when the refused is taken out."""

    id: UUID
    attempt: int | None
    rank: int
    series: list[Series] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    progress: dict[str, Any] | None = None
    refusals: Refusals = field(default_factory=Refusals)
    source: str = SDK

    @property
    def points(self) -> int:
        return sum(len(one) for one in self.series) + len(self.distributions)


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


def printable(text: Any) -> str | None:
    """A name as it may stand in an answer: lone surrogates escaped, cut to the length a name may have."""
    if not isinstance(text, str):
        return None
    return text[:NAME_LENGTH].encode("utf-8", "backslashreplace").decode()


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
    _check_size(sum(max(len(one.step), len(one.value)) for one in envelope.series) + len(envelope.distributions))
    for one in envelope.series:
        group = one.group if one.group is not None else _group_of(one.key)
        if _name_is_good(batch, one.key, group, max(len(one.step), len(one.value))):
            _add_columns(batch, one, group, now)
    _add_distributions(batch, envelope.distributions, now)
    batch.progress = _progress(batch, envelope.progress)
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
    if attempt is not None and not _is_count(attempt, LAST_RANK):
        raise bad_json("attempt must be a whole number.")
    if not _is_count(rank, LAST_RANK):
        raise bad_json("rank must be a whole number from 0.")
    if source not in SOURCES:
        raise bad_json(f"source must be one of {', '.join(SOURCES)}.")
    return Batch(id=batch_id, attempt=attempt, rank=rank, source=source)


def _check_size(points: int) -> None:
    if points > MAX_POINTS:
        raise too_large(f"A batch has at most {MAX_POINTS:,} points; this one has {points:,}.")


def _is_count(number: Any, most: int) -> bool:
    return type(number) is int and 0 <= number <= most


def _group_of(key: Any) -> str:
    head, slash, _rest = key.partition("/") if isinstance(key, str) else ("", "", "")
    return head if slash else ""


def why_not_a_name(name: Any) -> str:
    """Why this cannot be a key or a group; empty if it can."""
    if not isinstance(name, str):
        return "must be text"
    if len(name) > NAME_LENGTH:
        return f"must have at most {NAME_LENGTH} characters, not {len(name):,}"
    if bad := _BAD_CHARACTERS.search(name):
        kind = "a lone surrogate" if bad[0] >= "\ud800" else "a control character"
        return f"must not hold {kind} (U+{ord(bad[0]):04X})"
    return ""


def _name_is_good(batch: Batch, key: Any, group: Any, points: int) -> bool:
    if why := why_not_a_name(key) or ("must not be empty" if not key else ""):
        batch.refusals.add(key, "bad_key", f"key {why}", points=points)
        return False
    if why := why_not_a_name(group):
        batch.refusals.add(key, "bad_group", f"group {why}", points=points)
        return False
    return True


def _add_columns(batch: Batch, one: _Columns, group: str, now: float) -> None:
    """A series whose types the decoder has checked: columns at once, point by point only where a time is beyond use."""
    count = min(len(one.step), len(one.value))
    _refuse_surplus(batch, one.key, one.step, one.value, count)
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
                _refuse_time(batch, one.key, int(step[index]), index)
            step, time, value = step[good], time[good], value[good]
    if len(step):
        batch.series.append(Series(one.key, group, step, time, value))


def _refuse_surplus(batch: Batch, key: str, steps: list[Any], values: list[Any], count: int) -> None:
    for index in range(count, max(len(steps), len(values))):
        missing = "value" if index < len(steps) else "step"
        step = steps[index] if index < len(steps) else None
        batch.refusals.add(key, "incomplete", f"the point has no {missing}", step=step, index=index)


def _refuse_time(batch: Batch, key: str, step: int, index: int) -> None:
    batch.refusals.add(key, "bad_time", "time must be seconds since 1970, before year 10000", step=step, index=index)


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
    _check_size(
        sum(max(len(pair) if isinstance(pair, list) else 1 for pair in both) for both in pairs) + len(distributions)
    )
    for one in series:
        _judge_series(batch, one, now)
    _add_distributions(batch, distributions, now)
    batch.progress = _progress(batch, data.get("progress"))
    return batch


def _judge_series(batch: Batch, one: Any, now: float) -> None:
    if not isinstance(one, dict):
        batch.refusals.add(None, "bad_series", "a series is an object with key, step and value")
        return
    key: Any = one.get("key")
    steps, values, times = one.get("step"), one.get("value"), one.get("time")
    group = one["group"] if one.get("group") is not None else _group_of(key)
    if not (isinstance(steps, list) and isinstance(values, list) and (times is None or isinstance(times, list))):
        batch.refusals.add(key, "bad_series", "step, value and time must be lists of the same length")
        return
    if not _name_is_good(batch, key, group, max(len(steps), len(values))):
        return
    count = min(len(steps), len(values))
    _refuse_surplus(batch, key, steps, values, count)
    kept: list[tuple[int, float, float]] = []
    for index in range(count):
        step, value = _step(steps[index]), _value(values[index])
        time = _time(times[index] if times is not None and index < len(times) else None, now)
        if step is None:
            message = f"step must be a whole number from 0 to {LAST_STEP}"
            batch.refusals.add(key, "bad_step", message, step=steps[index], index=index)
        elif value is None:
            message = 'value must be a number, "NaN", "Infinity" or "-Infinity"'
            batch.refusals.add(key, "bad_value", message, step=step, index=index)
        elif time is None:
            _refuse_time(batch, key, step, index)
        else:
            kept.append((step, time, value))
    if kept:
        step_column, time_column, value_column = zip(*kept, strict=True)
        batch.series.append(
            Series(
                key,
                group,
                np.array(step_column, dtype=np.int64),
                np.array(time_column, dtype=np.float64),
                np.array(value_column, dtype=np.float64),
            )
        )


def _step(step: Any) -> int | None:
    if type(step) is float and step.is_integer() and 0 <= step < 2.0**63:
        return int(step)
    return step if _is_count(step, LAST_STEP) else None


def _value(value: Any) -> float | None:
    """A float64, or None where it is no number. A number beyond its range is infinite, as it is in the trainer."""
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if value is None:
        return math.nan
    return WORDS.get(value) if isinstance(value, str) else None


def _time(time: Any, now: float) -> float | None:
    if time is None:
        return now
    if type(time) not in (int, float) or not 0 <= time <= LAST_TIME:
        return None
    return float(time)


def _add_distributions(batch: Batch, distributions: list[Any], now: float) -> None:
    bins = 0
    for one in distributions:
        if not isinstance(one, dict):
            batch.refusals.add(None, "bad_distribution", "a distribution is an object with key, step, edges and counts")
            continue
        if isinstance(one.get("counts"), list):
            bins += len(one["counts"])
            _check_size(bins)
        found = _distribution(one, now)
        if isinstance(found, str):
            step = one.get("step")
            batch.refusals.add(one.get("key"), "bad_distribution", found, step=step)
        else:
            batch.distributions.append(found)


def _distribution(one: dict[str, Any], now: float) -> Distribution | str:
    """The distribution, or what is wrong with it."""
    key, of, step = one.get("key"), one.get("of", "weight"), _step(one.get("step"))
    time = _time(one.get("time"), now)
    if why := why_not_a_name(key) or ("must not be empty" if not key else ""):
        return f"key {why}"
    if why_not_a_name(of) or len(of) > 50:
        return "of must be text of at most 50 characters"
    if step is None:
        return f"step must be a whole number from 0 to {LAST_STEP}"
    if time is None:
        return "time must be seconds since 1970, before year 10000"
    edges, counts = _finite(one.get("edges", [])), _finite(one.get("counts", []))
    if edges is None or counts is None:
        return "edges and counts must be lists of finite numbers"
    if len(counts) > MAX_BINS:
        return f"a distribution has at most {MAX_BINS:,} bins"
    if len(edges) != (len(counts) + 1 if len(counts) else 0):
        return "edges must be one more than counts"
    if (np.diff(edges) < 0).any() or (counts < 0).any():
        return "edges must rise and counts must not be negative"
    nan, inf = one.get("nan", 0), one.get("inf", 0)
    if not (_is_count(nan, LAST_STEP) and _is_count(inf, LAST_STEP)):
        return "nan and inf must be whole numbers from 0"
    return Distribution(str(key), of, step, time, edges, counts, nan, inf)


def _finite(numbers: Any) -> Floats | None:
    if not isinstance(numbers, list) or any(type(number) not in (int, float) for number in numbers):
        return None
    try:
        column = np.array(numbers, dtype=np.float64)
    except OverflowError:
        return None
    return column if np.isfinite(column).all() else None


def _progress(batch: Batch, progress: Any) -> dict[str, Any] | None:
    """The fields of a progress that make sense; what does not is refused by name."""
    if progress is None:
        return None
    if not isinstance(progress, dict):
        batch.refusals.add(None, "bad_progress", "progress is an object with step, total and epoch")
        return None
    found: dict[str, Any] = {}
    for name, value in (("step", progress.get("step")), ("total", progress.get("total"))):
        if value is None:
            continue
        if (number := _step(value)) is None:
            batch.refusals.add(None, "bad_progress", f"progress.{name} must be a whole number from 0")
        else:
            found[name] = number
    epoch = progress.get("epoch")
    if epoch is not None:
        if type(epoch) in (int, float) and 0 <= epoch < 1e15:
            found["epoch"] = epoch
        else:
            batch.refusals.add(None, "bad_progress", "progress.epoch must be a finite number from 0")
    return found or None


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
