"""Pods of one job close together: where the queue sees room for it, what the scheduler is asked, and what people are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs.capacity import Free, Node, Request
from jobs.cluster.manifests import render
from jobs.cluster.room import free_capacity
from jobs.cluster.taints import first_not_tolerated, problem_of
from jobs.placement import shared_domain, told
from tests.jobs.yard import rendering

RACK, BLOCK = "topology.example.org/rack", "topology.example.org/block"
KEYS = (RACK, BLOCK)
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WHERE = {
    "a": {RACK: "r1", BLOCK: "b1"},
    "b": {RACK: "r1", BLOCK: "b1"},
    "c": {RACK: "r2", BLOCK: "b1"},
    "d": {RACK: "r3", BLOCK: "b2"},
    "bare": {},
}


def node(name: str, rack: str, block: str, *, gpus: int = 8) -> Node:
    return Node(name, gpus, "V100", 64_000, 512 * 2**30, domains=(rack, block))


def gang(workers: int, gpus: int = 8) -> Request:
    return Request(workers=workers, gpus=gpus, gpu_type="", cpu_millis=1000, memory_bytes=2**30)


class TestRoom:
    def test_a_gang_goes_where_one_rack_holds_it(self) -> None:
        free = Free([node("a", "r1", "b1"), node("b", "r2", "b1"), node("c", "r3", "b2"), node("d", "r3", "b2")])
        assert sorted(free.place(gang(2)) or ()) == ["c", "d"]

    def test_the_fullest_rack_that_holds_it_is_taken(self) -> None:
        large = [node(f"l{number}", "large", "b1") for number in range(4)]
        small = [node(f"s{number}", "small", "b1") for number in range(2)]
        assert sorted(Free([*large, *small]).place(gang(2)) or ()) == ["s0", "s1"]

    def test_then_one_block_and_then_anywhere(self) -> None:
        nodes = [node("a", "r1", "b1"), node("b", "r2", "b2"), node("c", "r3", "b2")]
        assert sorted(Free(nodes).place(gang(2)) or ()) == ["b", "c"]
        assert sorted(Free(nodes).place(gang(3)) or ()) == ["a", "b", "c"], "closeness is never a reason to wait"

    def test_nodes_that_say_nothing_are_no_rack_of_their_own(self) -> None:
        nodes = [node("x", "", ""), node("y", "", ""), node("a", "r1", "b1"), node("b", "r1", "b1")]
        assert sorted(Free(nodes).place(gang(2)) or ()) == ["a", "b"]
        plain = [Node(name, 8, "V100", 64_000, 512 * 2**30) for name in "xy"]
        assert sorted(Free(plain).place(gang(2)) or ()) == ["x", "y"]


class TestWords:
    @pytest.mark.parametrize(
        ("nodes", "words"),
        [
            ("a b", "Both pods are in one rack, r1."),
            ("a b a", "All 3 pods are in one rack, r1."),
            ("a a", "Both pods are on one node."),
            ("a c", "They are spread over 2 racks (r1, r2) in one block, b1."),
            ("a d", "They are spread over 2 racks (r1, r3)."),
            ("a", ""),
            ("a bare", ""),
            ("a gone", ""),
        ],
    )
    def test_one_sentence_says_how_close_they_are(self, nodes: str, words: str) -> None:
        assert told(nodes.split(), WHERE, KEYS) == words

    def test_the_closest_that_they_share(self) -> None:
        assert shared_domain(["a", "b"], WHERE, KEYS) == (RACK, "r1")
        assert shared_domain(["a", "c"], WHERE, KEYS) == (BLOCK, "b1")
        assert shared_domain(["a", "d"], WHERE, KEYS) == ("", "")
        assert shared_domain(["a", "bare"], WHERE, KEYS) == ("", "")


class TestPods:
    def test_a_single_pod_asks_for_no_company(self) -> None:
        pod = render(rendering(topology=KEYS, close_to=(RACK, "r1"))).leader["spec"]["template"]["spec"]
        assert "affinity" not in pod

    def test_a_gang_asks_softly(self) -> None:
        pod = render(rendering(topology=KEYS, close_to=(RACK, "r1"), workers=2)).leader["spec"]["template"]["spec"]
        assert set(pod["affinity"]) == {"nodeAffinity", "podAffinity"}
        assert all(set(part) == {PREFERRED} for part in pod["affinity"].values()), "a wish is never a reason to wait"
        terms = pod["affinity"]["podAffinity"][PREFERRED]
        assert [(one["weight"], one["podAffinityTerm"]["topologyKey"]) for one in terms] == [(100, RACK), (50, BLOCK)]

    def test_without_labels_it_asks_for_nothing(self) -> None:
        pod = render(rendering(workers=2)).leader["spec"]["template"]["spec"]
        assert "affinity" not in pod and "tolerations" not in pod

    def test_tolerations_are_those_of_the_cluster(self) -> None:
        wanted = ({"key": "nvidia.com/gpu", "operator": "Exists"},)
        pod = render(replace(rendering(), tolerations=wanted)).leader["spec"]["template"]["spec"]
        assert pod["tolerations"] == list(wanted)


GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


class TestTaints:
    @pytest.mark.parametrize(
        ("toleration", "tolerates"),
        [
            ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
            ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
            ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
            ({"key": "nvidia.com/gpu", "value": "present"}, True),
            ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "absent"}, False),
            ({"key": "nvidia.com/gpu"}, False),
            ({"operator": "Exists"}, True),
            ({"key": "other", "operator": "Exists"}, False),
        ],
    )
    def test_as_the_scheduler_decides(self, toleration: dict[str, Any], tolerates: bool) -> None:
        assert problem_of(toleration) == ""
        assert first_not_tolerated([GPU_TAINT], [toleration]) == ({} if tolerates else GPU_TAINT)

    def test_a_soft_taint_keeps_nobody_away(self) -> None:
        assert not first_not_tolerated([GPU_TAINT | {"effect": "PreferNoSchedule"}], [])

    def test_a_node_whose_taint_is_not_tolerated_counts_as_closed(self) -> None:
        raw = {
            "metadata": {"name": "gpu-0", "labels": {RACK: "r1", "type": "real"}},
            "spec": {"taints": [GPU_TAINT]},
            "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
        }
        shut = free_capacity([raw], [])[0]
        assert (shut.ready, shut.closed) == (False, "taint nvidia.com/gpu")
        seen = free_capacity([raw], [], tolerations=[{"operator": "Exists"}])[0]
        assert seen.ready and seen.domains == {RACK: "r1"}

    @pytest.mark.parametrize(
        ("toleration", "words"),
        [
            ("nvidia.com/gpu", "must be fields"),
            ({}, "must be fields"),
            ({"key": "x", "values": "y"}, "knows no field values"),
            ({"key": "x", "operator": "In"}, "neither Equal nor Exists"),
            ({"key": "x", "effect": "Never"}, "none of NoSchedule"),
            ({"value": "x"}, "needs `operator: Exists`"),
            ({"key": "x", "operator": "Exists", "value": "y"}, "takes no value"),
        ],
    )
    def test_what_kubernetes_would_refuse_is_named(self, toleration: Any, words: str) -> None:
        assert words in problem_of(toleration)
