"""Jobs of several roles as the planner sees them: which pods there are, where they fit, and what is said when they do not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.capacity import Free, Node, Request
from jobs.gang import PodGroup, first_ranks, leader_name, places, pod_groups, rank_of_lines
from jobs.spec import Resources

GIB = 2**30
SIZE = Resources(workers=2, gpus=4, gpu_type="A100", cpu_millis=8000, memory_bytes=32 * GIB)
SERVERS = pod_groups("tensorflow", Resources(workers=2, gpus=1, cpu_millis=2000, memory_bytes=GIB, parameter_servers=2))
MPI = pod_groups("mpi", SIZE)


def node(name: str, *, gpus: int = 0, cpus: int = 8, memory: int = 64) -> Node:
    kind = "A100" if gpus else ""
    return Node(name=name, gpus=gpus, gpu_type=kind, cpu_millis=cpus * 1000, memory_bytes=memory * GIB)


class TestPods:
    def test_most_launchers_have_workers_only(self) -> None:
        for launcher in ("plain", "torchrun", "jax", "xgboost", "tensorflow"):
            assert places(pod_groups(launcher, SIZE)) == [("worker", 0), ("worker", 1)]

    def test_only_workers_get_gpus(self) -> None:
        assert {group.role: group.gpus for group in SERVERS} == {"chief": 0, "ps": 0, "worker": 1}
        assert {group.role: group.gpus for group in MPI} == {"launcher": 0, "worker": 4}

    def test_a_launcher_is_small_and_never_larger_than_a_worker(self) -> None:
        assert (MPI[0].cpu_millis, MPI[0].memory_bytes) == (2000, 4 * GIB)
        small = pod_groups("mpi", Resources(cpu_millis=500, memory_bytes=GIB))[0]
        assert (small.cpu_millis, small.memory_bytes) == (500, GIB)

    def test_the_leader_has_the_name_of_its_role_where_there_are_several(self) -> None:
        assert leader_name("abc", 3, SERVERS) == "j-abc-3-chief"
        assert leader_name("abc", 3, MPI) == "j-abc-3-launcher"
        assert leader_name("abc", 3, pod_groups("plain", SIZE)) == "j-abc-3"

    def test_no_two_pods_share_a_rank(self) -> None:
        assert first_ranks(SERVERS) == {"chief": 0, "worker": 1, "ps": 3}
        for groups in (SERVERS, MPI):
            first = first_ranks(groups)
            assert len({first[role] + index for role, index in places(groups)}) == len(places(groups))

    def test_the_lines_of_an_mpi_launcher_are_those_of_its_ranks(self) -> None:
        assert rank_of_lines(MPI, role="launcher", index=0) == 0
        assert rank_of_lines(SERVERS, role="ps", index=1) == 4
        assert rank_of_lines(pod_groups("plain", SIZE), role="worker", index=1) == 1


class TestRoom:
    def test_every_pod_has_a_node_in_the_order_of_the_roles(self) -> None:
        free = Free([node("cpu"), node("gpu", gpus=4, cpus=4)])
        found = free.place(Request.of(SERVERS, gpu_type="A100"))
        assert found is not None
        assert dict(zip(places(SERVERS), found, strict=True)) == {
            ("chief", 0): "cpu",
            ("ps", 0): "cpu",
            ("ps", 1): "cpu",
            ("worker", 0): "gpu",
            ("worker", 1): "gpu",
        }

    def test_what_is_taken_comes_back(self) -> None:
        free = Free([node("cpu"), node("gpu", gpus=4, cpus=4)])
        asked = Request.of(SERVERS, gpu_type="")
        nodes = free.place(asked) or ()
        free.take(asked, nodes)
        assert (free.rooms["cpu"].cpu_millis, free.rooms["gpu"].gpus) == (2000, 2)
        free.give_back(asked, nodes)
        assert (free.rooms["cpu"].cpu_millis, free.rooms["gpu"].gpus) == (8000, 4)

    def test_a_gang_starts_whole_or_not_at_all_and_the_role_without_room_is_named(self) -> None:
        free = Free([node("gpu", gpus=4, cpus=7)])
        asked = Request.of(SERVERS, gpu_type="")
        assert free.place(asked) is None
        assert free.why_no_room(asked) == (
            "Its 2 parameter servers: Waiting for 3 more CPUs: 1 are free, it asks for 4."
        )
        assert free.rooms["gpu"].cpu_millis == 7000, "asking takes nothing"

    def test_the_role_that_no_node_holds_is_named(self) -> None:
        large = Request.of(pod_groups("mpi", Resources(cpu_millis=9000)), gpu_type="")
        assert Free([node("a")]).why_never(large) == (
            "Never starts as asked: each worker asks for 9 CPUs, the largest node has 8."
        )
        servers = Resources(workers=1, cpu_millis=3000, memory_bytes=GIB, parameter_servers=1)
        many = Request.of(pod_groups("tensorflow", servers), gpu_type="")
        assert Free([node("a")]).why_never(many) == (
            "Never starts as asked: 1 chief and 1 parameter server and 1 worker of these sizes do not fit on the "
            "1 node there is, even when empty."
        )

    def test_small_pods_first_where_that_is_the_only_way(self) -> None:
        """One worker and one helper: the worker fits on both nodes and would take the only one that holds the helper."""
        asked = Request(1, 0, "", 2000, GIB, beside=(PodGroup("chief", 1, 0, 1000, 60 * GIB),))
        assert Free([node("a", cpus=3, memory=8), node("b", cpus=2, memory=61)]).place(asked) == ("b", "a")


groups = st.builds(
    lambda count, cpus, memory: PodGroup("ps", count, 0, cpus * 500, memory * GIB),
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(1, 8),
)


@settings(max_examples=200, deadline=None)
@given(groups, st.integers(1, 3), st.integers(0, 4), st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_no_node_is_ever_filled_beyond_its_size(beside: PodGroup, workers: int, gpus: int, nodes: list[int]) -> None:
    free = Free([node(f"n{place}", gpus=count, cpus=4, memory=16) for place, count in enumerate(nodes)])
    asked = Request(workers, gpus, "", 1000, GIB, beside=(beside,))
    found = free.place(asked)
    if found is None:
        assert free.why_no_room(asked)
        return
    assert len(found) == workers + beside.count
    free.take(asked, found)
    assert all(min(room.gpus, room.cpu_millis, room.memory_bytes) >= 0 for room in free.rooms.values())
