"""JSON lines and CSV that a program writes beside its training, read while they are written.

A line that has no end yet waits. A file that was written anew, in place or under a new inode, is read from its beginning, and
rows that were told before are not told again. However large or odd a file is, it costs a bounded amount of memory.
"""

from __future__ import annotations

import array
import csv
import json
import os
import stat
import zlib
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Set

from trainhall.metric_rows import MOST_NAMES, Row, is_metric, names_steps, number_of, row_of

KNOWN = frozenset(
    """
    metrics.csv metrics.json metrics.jsonl metrics.ndjson trainer_log.jsonl train_log.jsonl training_log.jsonl scalars.json
    progress.csv result.json results.csv training.csv training.log train_log.csv training_log.csv
    """.split()
)
CSV_ENDS, JSON_ENDS = (".csv", ".tsv"), (".jsonl", ".ndjson")
LONGEST_LINE = 64 * 2**10
PIECE = 256 * 2**10
MOST_AT_ONCE = 4 * 2**20  # bytes of one file in one look
PATIENCE, PATIENCE_KNOWN = 64 * 2**10, 4 * 2**20  # bytes from the beginning without one row
SURE_AFTER = 3  # steps of a file whose name says nothing, before anything of it counts
MOST_HELD = 200  # rows meanwhile
MOST_REMEMBERED = 20_000  # rows of a file, four bytes each
MOST_KEYS = 500  # names of one file
EDGE = 256  # bytes by which a file is known again


def is_candidate(name: str) -> bool:
    return name in KNOWN or name.endswith(CSV_ENDS + JSON_ENDS)


class MetricFile:
    """One file, from where the last look ended.

    A name in KNOWN is enough to believe it. Of any other the steps must never go back and no name may be told twice at one
    step: a table of data that happens to have such a column is given up at its first rows.
    """

    def __init__(self, path: str, position: int = 0) -> None:
        self.path = path
        self.base = self.position = position
        self.is_known = os.path.basename(path) in KNOWN
        self.is_sure = self.is_known
        self.is_given_up = False
        self._inode: Optional[int] = None
        self._head = self._tail = b""
        self._as_json: Optional[bool] = None
        self._names: Optional[List[str]] = None
        self._delimiter = ","
        self._is_skipping = False  # in the middle of a line that is too long
        self._is_recalling = False
        self._told = array.array("I")
        self._row = 0
        self._held: List[Row] = []
        self._keys: Set[str] = set()
        self._last_step = -1
        self._keys_of_step: Set[str] = set()
        self._has_row = False
        self.modified = 0.0

    def read(self, *, last: bool = False) -> List[Row]:
        """What is new, at most a few megabytes of it. With `last`, a whole JSON object without its line end counts."""
        if self.is_given_up:
            return []
        with _open(self.path) as file:
            status = os.fstat(file.fileno())
            if self._is_another(file, status):
                self._begin_anew()
            self._inode, self.modified = status.st_ino, status.st_mtime
            if status.st_size <= self.position:
                return []
            found: List[Row] = []
            if self.position and not self._head:
                self._recall(file)
            for line in self._lines(file, status.st_size, last=last):
                found += self._rows_of(line)
            self._remember(file)
        if not self._has_row and self.position - self.base > (PATIENCE_KNOWN if self.is_known else PATIENCE):
            self.is_given_up = True
        return found

    @property
    def has_more(self) -> bool:
        try:
            return not self.is_given_up and os.stat(self.path).st_size > self.position
        except OSError:
            return False

    def state(self) -> Dict[str, Any]:
        where = self.position if self.is_sure and not self._is_skipping else self.base
        return {
            "base": self.base,
            "position": where,
            "inode": self._inode,
            "tail": self._tail.hex() if where == self.position else "",
            "sure": self.is_sure,
            "given_up": self.is_given_up,
            "step": self._last_step if self.is_sure else -1,
            "has_row": self._has_row,
        }

    def restore(self, state: Dict[str, Any]) -> None:
        self.base, self.position = int(state["base"]), int(state["position"])
        self._inode = state["inode"]
        self._tail = bytes.fromhex(state["tail"])
        self.is_sure, self.is_given_up = bool(state["sure"]), bool(state["given_up"])
        self._last_step, self._has_row = int(state["step"]), bool(state["has_row"])

    # Is it still the same file?

    def _is_another(self, file: BinaryIO, status: os.stat_result) -> bool:
        if self._inode is not None and status.st_ino != self._inode:
            return True
        if status.st_size < self.position:
            return True
        if self._head and os.pread(file.fileno(), len(self._head), 0) != self._head:
            return True
        start = self.position - len(self._tail)
        return bool(self._tail) and os.pread(file.fileno(), len(self._tail), start) != self._tail

    def _begin_anew(self) -> None:
        self.base = self.position = self._row = 0
        self._head = self._tail = b""
        self._names = self._as_json = None
        self._is_skipping = False
        self._last_step = -1
        self._keys_of_step = set()
        if not self.is_sure:
            self._held = []
            self._told = array.array("I")

    def _remember(self, file: BinaryIO) -> None:
        size = min(EDGE, self.position)
        self._head = os.pread(file.fileno(), size, 0)
        self._tail = os.pread(file.fileno(), size, self.position - size)

    def _recall(self, file: BinaryIO) -> None:
        """Go over what an earlier run wrote, or an agent before this one read: the header, and the rows not to tell again."""
        kept = self.is_sure, self._last_step, self.position
        self._last_step, self._is_recalling = -1, True
        self.position = 0
        for line in self._lines(file, 0, last=False, end=min(kept[2], MOST_AT_ONCE)):
            self._rows_of(line)
            if self._as_json is False and self.is_given_up and not self._told:
                return  # no header of a metric file
        self._is_recalling = self._is_skipping = self.is_given_up = False
        self.is_sure, self._last_step, self.position = kept
        self._held, self._keys_of_step = [], set()

    # Lines

    def _lines(self, file: BinaryIO, size: int, *, last: bool, end: Optional[int] = None) -> Iterator[bytes]:
        """Whole lines up to `end` and the position behind each; a few megabytes where no end is given."""
        most = self.position + MOST_AT_ONCE
        file.seek(self.position)
        rest = b""
        while self.position < most:
            piece = file.read(PIECE if end is None else max(0, min(PIECE, end - file.tell())))
            if not piece:
                break
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            for line in lines:
                self.position += len(line) + 1
                if self._is_skipping:
                    self._is_skipping = False
                elif len(line) <= LONGEST_LINE:
                    yield line
                if self.is_given_up and not self._is_recalling:
                    return
            if len(rest) > LONGEST_LINE:
                self.position += len(rest)
                self._is_skipping = True
                rest = b""
        if (
            last
            and rest
            and not self._is_skipping
            and rest.rstrip().endswith(b"}")
            and self.position + len(rest) >= size
        ):
            self.position += len(rest)
            yield rest

    def _rows_of(self, line: bytes) -> List[Row]:
        text = _text(line)
        if not text:
            return []
        if self._as_json is None:
            if text.startswith("#"):
                return []
            self._as_json = text.startswith("{")
            if not self._as_json:
                self._read_header(text)
                return []
        row = self._json_row(text) if self._as_json else self._csv_row(text)
        return self._judged(row) if row is not None else []

    def _json_row(self, text: str) -> Optional[Row]:
        if not (text.startswith("{") and text.endswith("}")):
            return None
        try:
            data = json.loads(text, parse_int=_integer)
        except (ValueError, RecursionError):
            return None
        return row_of(data.items()) if isinstance(data, dict) else None

    def _read_header(self, text: str) -> None:
        self._delimiter = next((mark for mark in (",", "\t", ";") if mark in text), ",")
        names = [name.strip() for name in _cells(text, self._delimiter)]
        good = names_steps(names) and any(is_metric(name) for name in names) and len(names) <= MOST_NAMES
        if not good or any(number_of(name) is not None for name in names):
            self.is_given_up = True
        self._names = names

    def _csv_row(self, text: str) -> Optional[Row]:
        cells = _cells(text, self._delimiter)
        names = self._names or []
        if len(cells) != len(names):
            return None  # the end of a line that somebody was killed over
        row = row_of((name, cell.strip()) for name, cell in zip(names, cells) if cell.strip())  # noqa: B905 - Python 3.8
        if row is None and not self.is_known and any(cells):
            self.is_given_up = not self.is_sure  # a step that is no whole number is none
        return row

    # Rows

    def _judged(self, row: Row) -> List[Row]:
        if not self.is_known and not self._follows(row) and not self._is_recalling:
            self.is_given_up = True
            self._held = []
            return []
        self._has_row = True
        self._keys.update(key for key, _value in row.pairs[: MOST_KEYS - len(self._keys)])
        pairs = [pair for pair in row.pairs if pair[0] in self._keys]
        if not self._is_news(row, pairs):
            return []
        row = row._replace(pairs=pairs)
        if self.is_sure or self._is_recalling:
            return [row]
        self._held.append(row)
        if len({held.step for held in self._held}) < SURE_AFTER:
            self.is_given_up = len(self._held) > MOST_HELD
            return []
        self.is_sure = True
        held, self._held = self._held, []
        return held

    def _follows(self, row: Row) -> bool:
        """Whether the row can come after the one before it, in a file that has one number for a name at a step."""
        if row.step < self._last_step:
            return False
        if row.step > self._last_step:
            self._last_step, self._keys_of_step = row.step, set()
        told = {key for key, _value in row.pairs if key != "epoch"}
        if told & self._keys_of_step:
            return False
        self._keys_of_step |= told
        return True

    def _is_news(self, row: Row, pairs: List[Any]) -> bool:
        """False for a row that stood in its place already before the file was written anew."""
        mark = zlib.crc32(repr((row.step, pairs)).encode("utf-8", "replace"))
        place, self._row = self._row, self._row + 1
        if place < len(self._told):
            if self._told[place] == mark:
                return False
            del self._told[place:]
        if place == len(self._told) < MOST_REMEMBERED:
            self._told.append(mark)
        return True


def _open(path: str) -> BinaryIO:
    """A regular file: never through a link, never waiting for the other end of a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileNotFoundError(path)
    return open(handle, "rb", buffering=0)  # type: ignore[return-value]


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip("\ufeff\r\n \x00")


def _cells(text: str, delimiter: str) -> List[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) < 30 else float(digits)
