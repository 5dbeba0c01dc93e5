"""The thread that carries what was logged to the portal. Nothing here is waited for by a training, but finish(), shortly.

log() only appends to a deque and, if the thread sleeps, puts a token into a SimpleQueue. Both are re-entrant: no lock that
a signal handler or a fork could find taken. Batches keep their id until they are answered, so the portal counts each once.
"""

from __future__ import annotations

import collections
import queue
import random
import sys
import threading
import time
from typing import Any, Deque, Dict, List, Optional

from trainhall.batches import Batch, Record, pack
from trainhall.place import Place, notice, spool_folder

MOST_RECORDS = 100_000  # calls of log() that may wait to be packed; more are counted as lost
MOST_DISTRIBUTIONS = 2_000
POINTS_PER_BATCH = 2_000  # packing more at once would hold the interpreter's lock for too long
DISTRIBUTIONS_PER_BATCH = 100
MEMORY_BOUND = 16 * 2**20  # bytes of packed batches in memory; what is beyond goes to the disk
TIMEOUT = 5.0
TICK = 0.2
FIRST_INTERVAL, NOTICE_INTERVAL = 2.0, 0.2
FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 30.0
FINAL = {400, 401, 403, 413}  # no repeat can help
OVER = {401, 403}  # nor anything else this process could send

POINT, FINISH = "point", "finish"


def import_all() -> None:
    """Everything the thread will need, before it starts.

    A fork while the thread imports would leave the child with half a module: ours, or the training's own json.
    """
    import encodings.idna
    import json
    import tempfile

    from trainhall import spool, tensors, web

    assert all((encodings.idna, json, tempfile, spool, tensors, web))


class _NoToken(Exception):
    """What stands where the token should be cannot be sent."""


class Sender:
    def __init__(self, place: Place, source: str = "") -> None:
        self.place = place
        self.source = source  # where the numbers were read, unless the training said them itself
        self.records: Deque[Record] = collections.deque()
        self.distributions: Deque[Dict[str, Any]] = collections.deque()
        self.progress: Optional[Dict[str, Any]] = None
        self.asleep = False
        self.lost = 0
        self.refused = 0
        self.settled = 0  # points that need nobody's care any more: the portal answered about them, or they are lost
        self._wake: "queue.SimpleQueue[str]" = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.Lock()
        self._outbox: Deque[Batch] = collections.deque()
        self._outbox_bytes = 0
        self._spool: Any = None
        self._web: Any = None
        self._interval = FIRST_INTERVAL
        self._failures = 0
        self._retry_after = 0.0
        self._deadline: Optional[float] = None
        self._stop_is_near = False
        self._closed = False  # the attempt is over, or its token is wrong
        self.is_left = False  # finish() went on without the thread
        self._said: Dict[str, bool] = {}

    # Called by the training

    def add(self, record: Record) -> None:
        if self._closed or len(self.records) >= MOST_RECORDS:
            self.lost += len(record[2])
            self.settled += len(record[2])
        else:
            self.records.append(record)
        self._nudge()

    def add_distribution(self, distribution: Dict[str, Any]) -> None:
        if self._closed or len(self.distributions) >= MOST_DISTRIBUTIONS:
            self.lost += 1
        else:
            self.distributions.append(distribution)
        self._nudge()

    def set_progress(self, progress: Dict[str, Any]) -> None:
        self.progress = progress  # only the newest counts
        self._nudge()

    def finish(self, seconds: float) -> None:
        """Send what waits, for so long at most; keep the rest on disk; say on stderr what was lost."""
        if self._thread is None and not self._has_something():
            return
        self._deadline = time.monotonic() + seconds
        thread = self._thread
        if thread is None or not thread.is_alive():
            self._work()  # no thread could be started: the interpreter is on its way out
        else:
            self._wake.put(FINISH)
            thread.join(seconds + TICK)
            if thread.is_alive() and self._web is not None:
                self._web.interrupt()
                thread.join(TICK)
            if thread.is_alive():  # deep in a name look-up, say: go on without it
                self.is_left = True
                self._keep_the_rest()
        self._thread = None
        self._deadline = None
        self._report()

    def say_once(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said[kind] = True
            print("trainhall: " + text, file=sys.stderr)

    def _nudge(self) -> None:
        if self.asleep:
            self.asleep = False
            self._wake.put(POINT)
        elif self._thread is None:
            self._start()

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return  # another thread is at it
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="trainhall", daemon=True)
                thread.start()
                self._thread = thread
        except RuntimeError:
            return  # no threads any more at exit; finish() will send by itself
        finally:
            self._starting.release()

    # The thread

    def _work(self) -> None:
        while not self.is_left:
            try:
                self._pack()
                self._deliver()
            except Exception as error:  # a bug of ours must end neither the training nor the reports
                self._failures += 1
                self.say_once("bug", "an error of its own: {!r}; it goes on.".format(error))
            if self._is_over():
                break
            self._rest()
        if not self.is_left:
            self._keep_the_rest()
            self._close_web()

    def _is_over(self) -> bool:
        if self._deadline is None:
            return False
        return not self._has_something() or time.monotonic() >= self._deadline

    def _has_something(self) -> bool:
        return bool(self.records or self.distributions or self.progress or self._outbox or self._spool)

    def _rest(self) -> None:
        """Until the next sending is due; for as long as there is nothing to send; no longer once finish() is called."""
        end = time.monotonic() + self._pause()
        while self._deadline is None:
            left = end - time.monotonic()
            if left <= 0 and self._has_something():
                return
            if left <= 0:
                self.asleep = True
                if not self._has_something():  # looked at again after the flag: log() may have come between
                    self._get(None)
                self.asleep = False
                return
            self._get(min(left, TICK))
            if len(self.records) >= POINTS_PER_BATCH:
                self._pack()
            if not self._stop_is_near and notice() is not None:
                self._stop_is_near = True  # leave little behind
                return
        if self._failures and self._deadline is not None:
            time.sleep(max(0.0, min(TICK, self._deadline - time.monotonic())))

    def _pause(self) -> float:
        if not self._failures:
            return min(self._interval, NOTICE_INTERVAL) if self._stop_is_near else self._interval
        backoff = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(self._failures - 1, 10))
        return max(backoff * random.uniform(0.8, 1.2), self._retry_after)  # noqa: S311 - spreads retries, no secret

    def _get(self, seconds: Optional[float]) -> None:
        try:
            self._wake.get(timeout=seconds)
        except queue.Empty:
            return

    def _pack(self) -> None:
        """Move what was logged into batches. While the portal is away only full ones, lest there be thousands."""
        least = POINTS_PER_BATCH if self._failures and self._deadline is None else 1
        while len(self.records) >= least or (self.distributions and least == 1) or (self.progress and least == 1):
            records: List[Record] = []
            points = 0
            while self.records and points < POINTS_PER_BATCH:
                record = self.records.popleft()
                records.append(record)
                points += len(record[2])
            distributions = [
                self.distributions.popleft() for _ in range(min(len(self.distributions), DISTRIBUTIONS_PER_BATCH))
            ]
            progress, self.progress = self.progress, None
            where = {"attempt": self.place.attempt, "rank": self.place.rank}
            self._keep(pack(records, distributions, progress, source=self.source, **where))

    def _keep(self, batch: Batch, *, on_disk: bool = False) -> None:
        if not on_disk and self._outbox_bytes + len(batch.body) <= MEMORY_BOUND:
            self._outbox.append(batch)
            self._outbox_bytes += len(batch.body)
            return
        if self._spool is None:
            from trainhall.spool import Spool

            self._spool = Spool(spool_folder())
        if not self._spool.put(batch):
            self.say_once("full", "points are lost: {}.".format(self._spool.problem))
            self.lost += batch.points
            self.settled += batch.points

    def _deliver(self) -> None:
        """Send batches until none is left or one fails."""
        while not self.is_left and (self._outbox or self._spool):
            if self._deadline is not None and time.monotonic() >= self._deadline:
                return
            batch = self._outbox[0] if self._outbox else self._spool.first()
            if not batch.body:  # its file is gone
                self.lost += batch.points
            elif not self._send(batch):
                return
            if self.is_left:
                return
            self.settled += batch.points
            if self._outbox:
                self._outbox_bytes -= len(self._outbox.popleft().body)
            else:
                self._spool.drop_first()

    def _send(self, batch: Batch) -> bool:
        """True if this batch is done with: stored, or refused for good."""
        if self._closed:
            self.lost += batch.points
            return True
        try:
            answer = self._post(batch)
        except _NoToken as error:
            self._failed("{}; points wait.".format(error))
            return False
        except Exception as error:
            self._failed("the portal cannot be reached ({}); points wait and are sent later.".format(_words(error)))
            return False
        if answer.status in FINAL:
            self.lost += batch.points
            self._closed = self._closed or answer.status in OVER
            text = "the portal refused points for good: {}.".format(_message(answer))
            self.say_once("final {}".format(answer.status), text)
            return True
        said = _json(answer) if answer.status == 200 else None
        if said is None or "accepted" not in said:
            self._retry_after = _seconds(answer.headers.get("Retry-After"))
            self._failed("the portal answered {}; points wait and are sent later.".format(_message(answer)))
            return False
        self._accepted(said)
        return True

    def _post(self, batch: Batch) -> Any:
        from trainhall.web import Web, is_sendable

        if self._web is None:
            self._web = Web(self.place.url, TIMEOUT)
        token = self.place.read_token()
        if not is_sendable(token):
            raise _NoToken("{} holds no token of a job".format(self.place.token_file))
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        if batch.is_gzip:
            headers["Content-Encoding"] = "gzip"
        timeout = TIMEOUT
        if self._deadline is not None:
            timeout = max(0.1, min(TIMEOUT, self._deadline - time.monotonic()))
        path = "/api/v1/jobs/{}/ingest/".format(self.place.job)
        return self._web.request("POST", path, batch.body, headers, timeout)

    def _accepted(self, said: Dict[str, Any]) -> None:
        self._failures, self._retry_after = 0, 0.0
        interval = said.get("interval_ms")
        if isinstance(interval, (int, float)):
            self._interval = min(10.0, max(0.05, interval / 1000))
        count, listed = said.get("refused_count") or 0, said.get("refused") or []
        self.refused += count
        if count and listed:
            text = "the portal refused a point of {!r}: {}".format(listed[0].get("key"), listed[0].get("message"))
            self.say_once("refused", text)

    def _failed(self, text: str) -> None:
        self._failures += 1
        if self._failures == 2:  # one failure is a restart of the portal, hardly worth a word
            self.say_once("away", text)

    # The end

    def _keep_the_rest(self) -> None:
        """What could not be sent goes to the disk, beside the job's output."""
        self._pack()
        while self._outbox:
            batch = self._outbox.popleft()
            self._outbox_bytes -= len(batch.body)
            self._keep(batch, on_disk=True)

    def _close_web(self) -> None:
        if self._web is not None:
            self._web.close()
            self._web = None

    def _report(self) -> None:
        if self._spool:
            text = "{} points could not be sent; they are kept in {}.".format(self._spool.points, self._spool.folder)
            self.say_once("kept {}".format(self._spool.points), text)
        if self.lost or self.refused:
            text = "{} points were lost and {} refused.".format(self.lost, self.refused)
            self.say_once(text, text)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _json(answer: Any) -> Optional[Dict[str, Any]]:
    import json

    try:
        said = json.loads(answer.body.decode())
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _message(answer: Any) -> str:
    error = (_json(answer) or {}).get("error")
    text = error.get("message") if isinstance(error, dict) else None
    return "{} {}".format(answer.status, text.rstrip(".") if isinstance(text, str) else "without a reason")


def _seconds(text: Optional[str]) -> float:
    """Of a Retry-After header; a date there counts as none, the backoff is enough."""
    return min(60.0, float(text)) if text and text.strip().isdigit() else 0.0
