"""What clusters said of attempts is kept with them, the same once (D11)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from jobs.cluster.events import heard
from jobs.cluster_events import MOST, EventKeeper, of_job
from jobs.models import Attempt, ClusterEvent
from jobs.states import JobStatus
from portal import gauges
from tests.factories import make_attempt, make_job
from tests.jobs.test_observed import condition, pod
from tests.jobs.test_observed_events import QUOTA, Raw, event, of_pod

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt(vision: Any, alice: Any, local_row: Any) -> Attempt:
    return make_attempt(make_job(alice, vision, status=JobStatus.STARTING, attempt_number=1), uid="u1")


def keep(attempt: Attempt, *events: Raw, pods: tuple[Raw, ...] = (), keeper: EventKeeper | None = None) -> None:
    (keeper or EventKeeper()).keep([(attempt, events, pods)])


def test_the_same_refusal_of_many_pods_is_one_row_with_their_number(attempt: Attempt) -> None:
    keep(attempt, *(event("FailedCreate", QUOTA.format(f"pod{n}"), at=n) for n in range(4)))
    row = ClusterEvent.objects.get()
    assert (row.reason, row.count, row.is_warning, row.is_known, row.about) == ("FailedCreate", 4, True, True, "")
    assert "pod0" not in row.message
    assert (row.first_at, row.last_at) == tuple(datetime(2026, 1, 1, 0, 0, at, tzinfo=UTC) for at in (0, 3))


def test_other_numbers_renew_the_row_and_what_the_cluster_forgot_stays(attempt: Attempt) -> None:
    many = [event("FailedCreate", QUOTA.format(f"p{n}"), at=n) for n in range(4)]
    keep(attempt, *many)
    less = QUOTA.replace("used: requests.nvidia.com/gpu=4", "used: requests.nvidia.com/gpu=7").format("x")
    keep(attempt, event("FailedCreate", less, at=30))
    row = ClusterEvent.objects.get()
    assert (row.count, "gpu=7" in row.message, row.first_at.second, row.last_at.second) == (4, True, 0, 30)
    keep(attempt)
    assert ClusterEvent.objects.count() == 1


def test_workers_are_named_and_a_machine_is_told(attempt: Attempt) -> None:
    scheduled = condition("PodScheduled") | {"lastTransitionTime": "2026-01-01T00:00:01Z"}
    pulled = of_pod("Pulled", 'Successfully pulled image "ml/numpy:1" in 41.2s (41.2s including waiting).', 1, 43)
    pods = (pod("Pending", 0, conditions=[scheduled]), pod("Pending", 1, conditions=[scheduled]))
    keep(attempt, pulled | {"type": "Normal"}, pods=pods)
    found = [(one["worker"], one["kind"], one["reason"], one["text"][:22]) for one in of_job(attempt.job)]
    assert found == [
        ("worker-0", "normal", "Scheduled", "Assigned to node1."),
        ("worker-1", "normal", "Scheduled", "Assigned to node1."),
        ("worker-1", "normal", "Pulled", "Successfully pulled im"),
    ]


def test_what_was_kept_is_not_written_again(attempt: Attempt, django_assert_num_queries: Any) -> None:
    keeper = EventKeeper()
    keep(attempt, event("FailedCreate", QUOTA.format("a")), keeper=keeper)
    with django_assert_num_queries(0):
        keep(attempt, event("FailedCreate", QUOTA.format("a")), keeper=keeper)


def test_a_cluster_that_talks_without_end_fills_no_table(attempt: Attempt) -> None:
    words = ["".join(chr(97 + (n // 26**k) % 26) for k in range(3)) for n in range(MOST + 50)]
    keep(attempt, *(event("Odd", word, at=n % 60) for n, word in enumerate(words)))
    assert ClusterEvent.objects.count() == MOST


def test_broken_and_hostile_events_do_no_harm(attempt: Attempt) -> None:
    keep(attempt, {}, {"reason": "x"}, event("\x00Bad", "<b>\x00\ud800 &" + "y" * 9000))
    row = ClusterEvent.objects.get()
    assert (row.reason, row.message[:6], len(row.message)) == ("Bad", "<b> &y", 2000)


def test_the_page_and_the_api_show_it_and_a_stranger_sees_nothing(
    attempt: Attempt, alice: Any, dave: Any, client: Client
) -> None:
    keep(attempt, event("FailedCreate", QUOTA.format("a")), event("Odd", "<script>alert(1)</script>"))
    client.force_login(alice)
    page = client.get(f"/jobs/{attempt.job_id}/events/").content.decode()
    assert "What the cluster said" in page
    assert "exceeded quota: trainhall" in page
    assert "<script>alert(1)" not in page
    answer = client.get(f"/api/v1/jobs/{attempt.job_id}/events/").json()
    assert [(one["attempt"], one["reason"]) for one in answer["cluster"]] == [(1, "FailedCreate"), (1, "Odd")]
    client.force_login(dave)
    assert client.get(f"/api/v1/jobs/{attempt.job_id}/events/").status_code == 404


def test_what_no_sentence_tells_is_counted(attempt: Attempt) -> None:
    now = datetime.now(UTC).isoformat()
    keep(attempt, event("FailedCreate", "a flux capacitor is missing") | {"lastTimestamp": now})
    assert not ClusterEvent.objects.get().is_known
    gauges.refresh()
    assert gauges.UNTOLD.labels(reason="FailedCreate")._value.get() == 1


def test_events_of_a_time_without_a_time_are_left_out() -> None:
    assert heard([{"reason": "x", "message": "y"}], []) == []
