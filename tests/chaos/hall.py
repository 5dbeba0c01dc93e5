"""A whole portal that tests hurt, a client that does not give up, and the witnesses that are asked afterwards."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from portal.embedded.environment import DATABASE
from portal.embedded.home import find_home
from portal.embedded.postgres import Postgres
from tests.portal.running import CHECKOUT, Portal, until

WEB, WORKER, CHILD, WATCHER = "uvicorn", "celery -A portal worker", "a child of the worker", "watch_cluster"
PATIENCE = 30.0  # F01: each job goes on so many seconds after the process is back
CANARY = "canary-5h2k9"
# small, and of a priority without a cap per person: what a test waits for is the portal, not the queue
SMALL = {
    "namespace": "vision",
    "runtime": "shell",
    "priority": "low",
    "resources": {"cpus": "20m", "memory": "64Mi"},
    "secrets": {"CANARY": {"value": CANARY}},
}


@dataclass
class Hall(Portal):
    """The portal of one data folder, with a folder of faults."""

    extra: dict[str, str] = field(default_factory=dict)

    @property
    def faults(self) -> Path:
        return self.data / "faults"

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "TRAINHALL_FAULT_DIR": str(self.faults), **self.extra}

    def plant(self, point: str, words: str = "") -> None:
        """The next process that comes to this point dies there; with words, the next one that was started with them."""
        self.faults.mkdir(exist_ok=True)
        whole = self.faults / f".{point}"  # none reads it before the words are in it
        whole.write_text(words)
        whole.rename(self.faults / point)

    def was_hit(self, point: str) -> bool:
        return not (self.faults / point).exists()

    def call(self, method: str, path: str, document: Any = None, *, key: str = "") -> tuple[int, Any]:
        """One request, as it goes; OSError or HTTPException where the connection breaks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, f"/api/v1/{path}", body, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(content) if content[:1] in b"{[" else content

    def submit_surely(self, command: str, *, key: str = "", seconds: float = 60, **more: Any) -> str:
        """As a careful client: the same key again until there is an answer, whatever breaks meanwhile."""
        key = key or uuid.uuid4().hex
        document = {**SMALL, "command": command, **more}
        end = time.monotonic() + seconds
        while True:
            try:
                status, answer = self.call("POST", "jobs/", document, key=key)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 0, error
            if status in (200, 201):
                return str(answer["id"])
            assert status in (0, 502, 503), f"refused: {status} {answer}"
            assert time.monotonic() < end, f"no answer within {seconds} s: {answer!r}"
            time.sleep(0.1)

    def status_of(self, job: str) -> str:
        return str(self.rows("SELECT status FROM jobs_job WHERE id = %s", job)[0][0])

    def until_over(self, job: str, *, seconds: float) -> None:
        try:
            until(lambda: self.status_of(job) == "succeeded", seconds=seconds, what=f"{job} succeeded")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.story_of(job)}") from None  # as it is now, not as the wait began

    def kill(self, words: str) -> int:
        pid = self.process_of(words)
        os.kill(pid, signal.SIGKILL)
        return pid

    def until_back(self, words: str, *, seconds: float = 40) -> None:
        until(
            lambda: any(words in line for line in self.processes().values()), seconds=seconds, what=f"{words} is back"
        )

    # Witnesses: the database by SQL, and the journals of the local cluster

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        home = find_home(CHECKOUT, self.environment, uid=os.geteuid())
        with psycopg.connect(Postgres(home).url(DATABASE), connect_timeout=5) as connection:
            return connection.execute(query, values).fetchall()

    def story_of(self, job: str) -> list[Any]:
        query = "SELECT kind, attempt, old, new, reason_code FROM jobs_jobevent WHERE job_id = %s ORDER BY at, id"
        return self.rows(query, job)

    def files_of_cluster(self, name: str) -> list[Path]:
        """By walking, which does not mind that folders go away meanwhile."""
        return [Path(folder) / name for folder, _dirs, files in os.walk(self.data / "cluster") if name in files]

    def journals(self) -> dict[str, list[list[dict[str, Any]]]]:
        """Per object name, every journal there is of it; there should be one."""
        found: dict[str, list[list[dict[str, Any]]]] = {}
        for path in self.files_of_cluster("journal.jsonl"):
            name = path.parent.name.removeprefix(".new-")
            found.setdefault(name, []).append([json.loads(line) for line in path.read_text().splitlines()])
        return found

    def left_over(self) -> list[str]:
        """What outlives its job, in words."""
        left = []
        counts = {
            "open usage intervals": "SELECT count(*) FROM jobs_usageinterval WHERE ended_at IS NULL",
            "secrets in the database": "SELECT count(*) FROM jobs_jobsecret",
            "attempts not over": "SELECT count(*) FROM jobs_attempt WHERE ended_at IS NULL OR deleted_at IS NULL",
            "jobs not over": "SELECT count(*) FROM jobs_job WHERE finished_at IS NULL",
        }
        for what, query in counts.items():
            if number := self.rows(query)[0][0]:
                left.append(f"{number} {what}")
        for namespace in (self.data / "cluster").glob("*/"):
            names = {path.name for path in namespace.iterdir()} - {"deleted", "volumes", "namespace.json"}
            left += [f"an object {name}" for name in sorted(names)]
        left += [f"a secret: {path}" for path in self.files_of_cluster("secret.json")]
        return left

    def lies(self, jobs: list[str]) -> list[str]:
        """Where the witnesses disagree with "one job per submission, one object per attempt, one end"."""
        wrong = []
        known = [row[0] for row in self.rows("SELECT id FROM jobs_job")]
        if sorted(known) != sorted(jobs):
            wrong.append(f"lost {set(jobs) - set(known)}, one too many {set(known) - set(jobs)}")
        attempts = self.rows("SELECT object_name, uid FROM jobs_attempt")
        journals = self.journals()
        # an attempt that was stopped before its launch has no object; any other that has none was lost
        made = "SELECT object_name FROM jobs_attempt WHERE uid <> '' OR stop_code = ''"
        if lost := {name for (name,) in self.rows(made)} - set(journals):
            wrong.append(f"attempts without their objects: {lost}")
        if strange := set(journals) - {name for name, _uid in attempts}:
            wrong.append(f"objects of no attempt: {strange}")
        for name, uid in attempts:
            for journal in journals.get(name, ()):
                events = Counter((line["event"], line.get("pod", "")) for line in journal)
                twice = [event for event in events if event[0] in ("start", "exit") and events[event] > 1]
                if len(journals[name]) != 1 or events["create", ""] != 1 or twice:
                    wrong.append(f"{name}: {len(journals[name])} objects, {dict(events)}")
                if uid and journal[0]["uid"] != uid:
                    wrong.append(f"{name}: the object is not the one that was stored")
        ends = "SELECT job_id, count(*) FROM jobs_jobevent WHERE new IN ('succeeded', 'failed', 'cancelled')"
        wrong += [f"{job} ended {times} times" for job, times in self.rows(f"{ends} GROUP BY job_id") if times != 1]
        return wrong

    def assert_all_true(self, jobs: list[str], *, seconds: float = PATIENCE) -> None:
        """F01 and F13: nothing lost, nothing twice, nothing left."""
        end = time.monotonic() + seconds
        while left := self.left_over():
            assert time.monotonic() < end, f"left after {seconds} s: {left}"
            time.sleep(0.2)
        lies = self.lies(jobs)
        assert not lies, lies
