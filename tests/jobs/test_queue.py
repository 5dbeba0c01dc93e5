"""The planner: who starts, who waits, and what they are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.capacity import Free, Node, Request
from jobs.forecast import Verdict, forecast
from jobs.queue import AGEING_CAP, Holding, NamespaceLimit, Snapshot, Waiting, effective_priority, plan
from jobs.states import Reason

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NODE = Node(name="gpu-0", gpus=8, gpu_type="A100", cpu_millis=64_000, memory_bytes=512 * 2**30)


def request(workers: int = 1, gpus: int = 1, **more: object) -> Request:
    return Request(workers=workers, gpus=gpus, **{"gpu_type": "", "cpu_millis": 1000, "memory_bytes": 2**30, **more})


def waiting(name: str, *, ago: float = 0, **more: object) -> Waiting:
    values = {
        "id": name,
        "name": name,
        "namespace": "vision",
        "owner": "alice",
        "priority": "normal",
        "priority_value": 5000,
        "request": request(),
        "queued_at": NOW - timedelta(seconds=ago),
        "waited_before": 0.0,
        "time_limit": 3600,
    }
    return Waiting(**{**values, **more})


def holding(name: str, asks: Request, *, minutes: float | None = 60, **more: object) -> Holding:
    values = {"namespace": "vision", "owner": "bob", "priority": "normal", "nodes": ("gpu-0",) * asks.workers}
    ends = None if minutes is None else NOW + timedelta(minutes=minutes)
    return Holding(job_id=name, request=asks, ends_by=ends, **{**values, **more})


def snapshot(
    *jobs: Waiting, holds: tuple[Holding, ...] = (), nodes: tuple[Node, ...] = (NODE,), **more: object
) -> Snapshot:
    return Snapshot(waiting=jobs, holding=holds, nodes=nodes, **{"seen_at": NOW, **more})


def admitted(snap: Snapshot) -> list[str]:
    return [admission.job_id for admission in plan(snap, NOW).admissions]


def why(snap: Snapshot, name: str) -> tuple[str, str]:
    wait = next(wait for wait in plan(snap, NOW).waits if wait.job_id == name)
    return wait.code, wait.text


def test_a_job_that_fits_starts() -> None:
    assert plan(snapshot(waiting("a")), NOW).admissions[0].nodes == ("gpu-0",)


def test_priority_goes_first_and_then_who_waits_longer() -> None:
    jobs = [
        waiting("young", ago=10),
        waiting("old", ago=200),
        waiting("high", priority="high", priority_value=10_000),
        waiting("low", ago=90, priority="low", priority_value=100),
    ]
    assert admitted(snapshot(*jobs)) == ["high", "old", "young", "low"]


def test_ageing_never_crosses_a_class() -> None:
    year = waiting("a", ago=365 * 86400)
    assert effective_priority(year, NOW) == 5000 + AGEING_CAP < 10_000


def test_waits_of_earlier_attempts_count() -> None:
    assert effective_priority(waiting("a", waited_before=1200.0), NOW) == 5000 + 200


def test_among_equals_the_namespace_that_uses_less_goes_first() -> None:
    snap = snapshot(
        waiting("a", namespace="vision"),
        waiting("b", namespace="speech"),
        holds=(holding("x", request(gpus=1)),),
    )
    assert admitted(snap) == ["b", "a"]


def test_a_gang_starts_whole_or_not_at_all() -> None:
    pair = waiting("pair", request=request(workers=2, gpus=3))
    other = waiting("other", ago=-1, request=request(workers=2, gpus=3))
    snap = snapshot(pair, other)
    assert admitted(snap) == ["pair"]
    assert why(snap, "other") == (
        Reason.WAITING_FOR_CAPACITY,
        "Waiting for 4 more GPUs: 2 of 8 are free.",
    )


def test_fragmented_gpus_are_told_as_such() -> None:
    nodes = tuple(replace(NODE, name=f"gpu-{index}", gpus=4) for index in range(3))
    holds = tuple(holding(f"h{index}", request(gpus=2), nodes=(f"gpu-{index}",)) for index in range(3))
    code, text = why(snapshot(waiting("a", request=request(gpus=4)), holds=holds, nodes=nodes), "a")
    assert code == Reason.WAITING_FOR_CAPACITY
    assert text == "6 GPUs are free, but at most 2 on one node; each worker needs 4 on one."


def test_a_persons_limit_of_a_priority_makes_the_next_job_wait() -> None:
    snap = snapshot(
        waiting("a", priority="high", priority_value=10_000),
        waiting("b", priority="high", priority_value=10_000, ago=-1),
        jobs_per_user={"high": 1},
    )
    assert admitted(snap) == ["a"]
    assert why(snap, "b") == (
        Reason.WAITING_FOR_USER_LIMIT,
        "alice's high-priority limit is reached, 1/1: starts when one ends.",
    )


def test_the_limit_is_each_persons_own() -> None:
    snap = snapshot(waiting("a"), waiting("b", owner="bob"), jobs_per_user={"normal": 1})
    assert admitted(snap) == ["a", "b"]


def test_a_namespaces_quota_trips_exactly_at_the_limit() -> None:
    jobs = [waiting(f"j{index}", ago=-index) for index in range(6)]
    snap = snapshot(*jobs, namespaces={"vision": NamespaceLimit(gpus=4)})
    assert admitted(snap) == ["j0", "j1", "j2", "j3"]
    assert why(snap, "j4") == (Reason.WAITING_FOR_QUOTA, "Waiting for 1 GPU more: vision uses 4 GPUs of 4 GPUs.")


def test_what_can_never_run_says_so_and_blocks_nobody() -> None:
    snap = snapshot(waiting("whale", ago=60, request=request(gpus=16)), waiting("a"))
    assert admitted(snap) == ["a"]
    assert why(snap, "whale") == (
        Reason.NEVER_FITS,
        "Never starts as asked: each worker asks for 16 GPUs, the largest node has 8.",
    )


def test_a_small_job_passes_a_blocked_one_only_if_it_ends_in_time() -> None:
    busy = holding("busy", request(gpus=6), minutes=30)
    large = waiting("large", ago=60, request=request(gpus=8))
    quick = waiting("quick", request=request(gpus=2), time_limit=1700)
    slow = waiting("slow", request=request(gpus=2), time_limit=7200)
    snap = snapshot(large, quick, slow, holds=(busy,))
    assert admitted(snap) == ["quick"]
    code, text = why(snapshot(large, slow, holds=(busy,)), "slow")
    assert code == Reason.WAITING_BEHIND
    assert "12:30" in text


def test_a_job_may_pass_for_longer_where_the_blocked_one_leaves_room() -> None:
    busy = holding("busy", request(gpus=6), minutes=30)
    large = waiting("large", ago=60, request=request(gpus=4))
    slow = waiting("slow", request=request(gpus=2), time_limit=7200)
    assert admitted(snapshot(large, slow, holds=(busy,))) == ["slow"]


def test_held_unfetched_and_backing_off_jobs_wait_and_block_nobody() -> None:
    snap = snapshot(
        waiting("held", ago=9, held_by="carol", request=request(gpus=8)),
        waiting("git", ago=8, code_ready=False, request=request(gpus=8)),
        waiting("again", ago=7, not_before=NOW + timedelta(seconds=19), request=request(gpus=8)),
        waiting("a", request=request(gpus=8)),
    )
    assert admitted(snap) == ["a"]
    assert why(snap, "held") == (Reason.HELD, "Held by carol: release it to let it start.")
    assert why(snap, "git")[0] == Reason.FETCHING_CODE
    assert "tries again at 12:00:19 UTC" in why(snap, "again")[1]


def test_nothing_starts_on_a_cluster_that_is_not_seen() -> None:
    snap = snapshot(waiting("a"), seen_at=NOW - timedelta(seconds=61))
    assert admitted(snap) == []
    assert why(snap, "a")[0] == Reason.WAITING_FOR_CLUSTER


def test_nodes_that_are_not_ready_take_nothing() -> None:
    assert admitted(snapshot(waiting("a"), nodes=(replace(NODE, ready=False),))) == []


def test_a_forecast_says_what_the_next_pass_would_do() -> None:
    asked = waiting("", request=request(gpus=4))
    now = forecast(snapshot(), asked, NOW)
    assert (now.verdict, now.text) == (Verdict.FITS_NOW, "Fits now, on gpu-0.")
    full = snapshot(waiting("b", ago=9, request=request(gpus=8)), holds=(holding("x", request(gpus=8)),))
    later = forecast(full, asked, NOW)
    assert (later.verdict, later.ahead) == (Verdict.QUEUED, 1)
    assert later.text.startswith("Queued behind 1 job. Waiting for 4 more GPUs: 0 of 8 are free.")
    never = forecast(snapshot(), replace(asked, request=request(gpus=16)), NOW)
    assert never.verdict is Verdict.NEVER
    assert never.alternatives[:1] == ["1 worker × 8 GPUs"] or never.alternatives[0].endswith("8 GPUs")


sizes = st.builds(request, workers=st.integers(1, 6), gpus=st.integers(0, 10))
jobs = st.lists(
    st.builds(
        lambda asks, owner, ago, limit: (asks, owner, ago, limit),
        sizes,
        st.sampled_from(["alice", "bob"]),
        st.integers(0, 9000),
        st.integers(60, 9000),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(jobs, st.lists(st.integers(0, 8), min_size=1, max_size=3))
def test_no_plan_ever_takes_more_than_there_is(asked: list, gpus: list[int]) -> None:
    nodes = tuple(replace(NODE, name=f"n{index}", gpus=count, cpu_millis=6000) for index, count in enumerate(gpus))
    waits = [
        waiting(f"j{index}", request=asks, owner=owner, ago=ago, time_limit=limit)
        for index, (asks, owner, ago, limit) in enumerate(asked)
    ]
    by_id = {job.id: job for job in waits}
    decided = plan(snapshot(*waits, nodes=nodes, jobs_per_user={"normal": 3}), NOW)
    free = Free(nodes)
    for admission in decided.admissions:
        assert len(admission.nodes) == by_id[admission.job_id].request.workers
        free.take(by_id[admission.job_id].request, admission.nodes)
    assert all(room.gpus >= 0 and room.cpu_millis >= 0 for room in free.rooms.values())
    for owner in ("alice", "bob"):
        assert sum(by_id[admission.job_id].owner == owner for admission in decided.admissions) <= 3
    # everybody is either started or told why
    told = {wait.job_id for wait in decided.waits}
    assert told | {admission.job_id for admission in decided.admissions} == set(by_id)
    assert [wait.position for wait in decided.waits] == list(range(1, len(decided.waits) + 1))
