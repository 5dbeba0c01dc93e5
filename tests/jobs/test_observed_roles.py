"""What the Jobs and Pods of several roles mean together, as a Kubernetes cluster writes them."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.cluster.observed import Observed, observe_attempt
from jobs.states import JobStatus, Reason

Raw = dict[str, Any]
STARTING, RUNNING, SUCCEEDED, FAILED = JobStatus.STARTING, JobStatus.RUNNING, JobStatus.SUCCEEDED, JobStatus.FAILED
NAME = "j-7f3k2p9m4x-1"


def job(role: str, *conditions: Raw, suspend: bool = False, started: bool = True, pods: int = 1) -> Raw:
    status: Raw = {"conditions": list(conditions)}
    if started:
        status["startTime"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": {"name": f"{NAME}-{role}", "uid": f"u-{role}"},
        "spec": {
            "suspend": suspend,
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 0,
            "activeDeadlineSeconds": 3600,
        },
        "status": status,
    }


def condition(kind: str, reason: str = "", message: str = "", *, at: str = "00:10:00") -> Raw:
    found = {"type": kind, "status": "True", "reason": reason, "message": message}
    return found | {"lastTransitionTime": f"2026-01-01T{at}Z"}


def pod(
    role: str, phase: str = "Running", code: int | None = None, *, index: int = 0, at: str = "00:10:00", **more: Any
) -> Raw:
    status: Raw = {"phase": phase, "conditions": []}
    if phase == "Running":
        status["conditions"].append(condition("Ready"))
    if code is not None:
        ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "finishedAt": f"2026-01-01T{at}Z"}
        status["containerStatuses"] = [{"name": "main", "image": "i", "state": {"terminated": ended}}]
    labels = {"batch.kubernetes.io/job-completion-index": str(index), "trainhall.io/role": role}
    name = f"{NAME}-{role}-{index}-abcde"
    return {
        "metadata": {"name": name, "uid": f"p-{role}-{index}", "labels": labels, **more},
        "spec": {"nodeName": "node1", "containers": [{"name": "main"}]},
        "status": status,
    }


DELETING = {"deletionTimestamp": "2026-01-01T00:10:30Z"}
DONE = condition("Complete", "CompletionsReached")
EMPTIED = f"Pod u-alice/{NAME}-ps-0-abcde has condition DisruptionTarget matching FailJob rule at index 0"
BACKOFF = condition("Failed", "BackoffLimitExceeded")
ALIVE = [pod("ps"), pod("worker")]


def look(
    chief: Raw | None, pods: list[Raw], *, ps: Raw | None = None, worker: Raw | None = None, **more: Any
) -> Observed:
    others = [ps or job("ps"), worker or job("worker")]
    return observe_attempt(chief, pods, others=others, role="chief", **more)


# name: (what was seen, status, reason, ended, decided, a part of the sentence)
TABLE: dict[str, tuple[Observed, JobStatus | None, Reason | None, bool, bool, str]] = {
    "created": (
        look(
            job("chief", suspend=True, started=False),
            [],
            ps=job("ps", suspend=True, started=False),
            worker=job("worker", suspend=True, started=False),
        ),
        STARTING,
        Reason.ADMITTED,
        False,
        False,
        "about to be released",
    ),
    "half released": (
        look(job("chief", suspend=True, started=False), [pod("ps", "Pending")]),
        STARTING,
        Reason.ADMITTED,
        False,
        False,
        "its chief comes last",
    ),
    "one role is missing": (
        look(job("chief"), [pod("chief"), pod("ps")]),
        STARTING,
        Reason.ADMITTED,
        False,
        False,
        "not there yet",
    ),
    "one pod of three waits": (
        look(job("chief"), [pod("chief"), pod("ps"), pod("worker", "Pending")]),
        STARTING,
        Reason.ADMITTED,
        False,
        False,
        "worker-0 is starting. 2 of 3 pods run.",
    ),
    "all run": (look(job("chief"), [pod("chief"), *ALIVE]), RUNNING, None, False, False, ""),
    "a worker is done before the chief": (
        look(job("chief"), [pod("chief"), pod("ps"), pod("worker", "Succeeded", 0)], worker=job("worker", DONE)),
        RUNNING,
        None,
        False,
        False,
        "",
    ),
    "the chief is done": (
        look(job("chief", DONE), [pod("chief", "Succeeded", 0), *ALIVE]),
        SUCCEEDED,
        Reason.COMPLETED,
        False,
        True,
        "chief-0 ended with exit code 0, which ends the others",
    ),
    "the chief is done and the rest ended by our SIGTERM": (
        look(
            job("chief", DONE),
            [
                pod("chief", "Succeeded", 0),
                pod("ps", "Failed", 143, **DELETING),
                pod("worker", "Failed", 137, **DELETING),
            ],
            ps=job("ps", suspend=True),
            worker=job("worker", suspend=True),
        ),
        SUCCEEDED,
        Reason.COMPLETED,
        True,
        True,
        "Finished",
    ),
    "the chief is done, and a worker fell with it": (
        look(
            job("chief", DONE),
            [pod("chief", "Succeeded", 0), pod("worker", "Failed", 1)],
            worker=job("worker", BACKOFF),
        ),
        SUCCEEDED,
        Reason.COMPLETED,
        True,
        True,
        "Finished",
    ),
    "the chief's pod is done and its Job does not say so yet": (
        look(job("chief"), [pod("chief", "Succeeded", 0), *ALIVE]),
        None,
        Reason.COMPLETED,
        False,
        False,
        "ending",
    ),
    "a worker failed": (
        look(job("chief"), [pod("chief"), pod("ps"), pod("worker", "Failed", 7)], worker=job("worker", BACKOFF)),
        None,
        Reason.NON_ZERO_EXIT,
        False,
        True,
        "worker-0 ended with exit code 7",
    ),
    "a worker failed first, then the chief": (
        look(
            job("chief", condition("Failed", "BackoffLimitExceeded", at="00:10:05")),
            [
                pod("chief", "Failed", 1, at="00:10:04"),
                pod("ps", "Failed", 143, **DELETING),
                pod("worker", "Failed", 7),
            ],
            worker=job("worker", BACKOFF),
            ps=job("ps", suspend=True),
        ),
        FAILED,
        Reason.NON_ZERO_EXIT,
        True,
        False,
        "worker-0 ended with exit code 7",
    ),
    "the chief failed, and the rest is suspended by us": (
        look(
            job("chief", BACKOFF),
            [pod("chief", "Failed", 3), pod("ps", "Failed", 143, **DELETING)],
            ps=job("ps", suspend=True),
            worker=job("worker", suspend=True),
        ),
        FAILED,
        Reason.NON_ZERO_EXIT,
        True,
        False,
        "chief-0 ended with exit code 3",
    ),
    "a parameter server's machine is emptied": (
        look(
            job("chief"),
            [pod("chief"), pod("worker")],
            ps=job("ps", condition("FailureTarget", "PodFailurePolicy", EMPTIED)),
        ),
        None,
        Reason.DISRUPTION,
        False,
        True,
        "DisruptionTarget",
    ),
    "the time limit of one is that of all": (
        look(
            job("chief"),
            [pod("chief"), pod("ps", "Failed", 143, **DELETING)],
            ps=job("ps", condition("Failed", "DeadlineExceeded")),
        ),
        None,
        Reason.TIME_LIMIT,
        False,
        True,
        "1 h",
    ),
    "stopped, and still in its grace": (
        look(
            job("chief", suspend=True),
            [pod("chief", **DELETING)],
            ps=job("ps", suspend=True),
            worker=job("worker", suspend=True),
        ),
        None,
        Reason.STOPPED,
        False,
        False,
        "ending",
    ),
    "stopped": (
        look(job("chief", suspend=True), [], ps=job("ps", suspend=True), worker=job("worker", suspend=True)),
        None,
        Reason.STOPPED,
        True,
        False,
        "Stopped",
    ),
    "deleted, and nothing is left of the chief": (
        look(None, [pod("worker", "Succeeded", 0)], deleted=True),
        FAILED,
        Reason.OUTCOME_UNKNOWN,
        True,
        False,
        "vanished",
    ),
    "deleted, and the chief was seen to end well": (
        look(None, [pod("chief", "Succeeded", 0), pod("worker", "Succeeded", 0)], deleted=True),
        SUCCEEDED,
        Reason.COMPLETED,
        True,
        False,
        "chief-0",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_several_jobs_are_one_attempt(name: str) -> None:
    seen, status, reason, ended, decided, words = TABLE[name]
    assert (seen.status, seen.reason, seen.ended, seen.decided) == (status, reason, ended, decided)
    assert words in seen.text


def test_where_there_is_one_role_its_cluster_ends_it() -> None:
    one = job("worker", condition("FailureTarget", "BackoffLimitExceeded"), pods=2)
    seen = observe_attempt(one, [pod("worker", "Failed", 7), pod("worker", index=1)])
    assert (seen.status, seen.reason, seen.decided) == (None, Reason.NON_ZERO_EXIT, False)


def test_whoever_is_ended_with_the_chief_has_not_failed_by_itself() -> None:
    seen, *_rest = TABLE["the chief is done and the rest ended by our SIGTERM"]
    assert {worker.name: worker.message for worker in seen.workers} == {
        "chief-0": "",
        "ps-0": "Ended with the chief.",
        "worker-0": "Ended with the chief.",
    }
