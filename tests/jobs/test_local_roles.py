"""Jobs of several roles on the local cluster: their pods find each other, and the leader's end is the end of all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cluster.port import ObjectRef
from jobs.states import JobStatus, Reason
from tests.jobs.yard import Yard

# what each role does, told apart as a TensorFlow program tells it apart
BY_ROLE = 'case "$TF_CONFIG" in *\'"type": "{role}"\'*) {does};; *) {otherwise};; esac'
FOR_EVER = "while :; do sleep 0.1; done"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.close()


def start(yard: Yard, *, role: str, does: str, otherwise: str = FOR_EVER, **changes: object) -> ObjectRef:
    script = BY_ROLE.format(role=role, does=does, otherwise=otherwise)
    return yard.start(script, launcher="tensorflow", workers=2, parameter_servers=1, **changes)


def places(yard: Yard, ref: ObjectRef) -> list[str]:
    return [worker.name for worker in yard.look_at_all(ref, role="chief").workers]


class TestOutcome:
    def test_the_chiefs_success_is_certain_while_the_others_run(self, yard: Yard) -> None:
        ref = start(yard, role="chief", does="true")
        yard.wait(lambda: yard.look_at_all(ref, role="chief").decided)

        seen = yard.look_at_all(ref, role="chief")
        assert (seen.status, seen.ended, seen.pods_gone) == (JobStatus.SUCCEEDED, False, False)
        assert seen.text == "Finished: chief-0 ended with exit code 0, which ends the others."
        assert places(yard, ref) == ["chief-0", "ps-0", "worker-0", "worker-1"]

        yard.cluster.suspend(ref)
        yard.wait(lambda: yard.look_at_all(ref, role="chief").ended)
        assert yard.look_at_all(ref, role="chief").status == JobStatus.SUCCEEDED

    def test_the_failure_of_one_role_is_that_of_all(self, yard: Yard) -> None:
        ref = start(yard, role="ps", does="exit 7")
        yard.wait(lambda: yard.look_at_all(ref, role="chief").decided)

        seen = yard.look_at_all(ref, role="chief")
        assert (seen.status, seen.ended, seen.exit_code) == (None, False, 7)
        assert any(worker.phase in ("Pending", "Running") for worker in seen.workers), "a Job ends only its own pods"

        yard.cluster.suspend(ref)
        yard.wait(lambda: yard.look_at_all(ref, role="chief").ended)
        seen = yard.look_at_all(ref, role="chief")
        assert (seen.status, seen.reason) == (JobStatus.FAILED, Reason.NON_ZERO_EXIT)
        assert seen.text.startswith("ps-0 ended with exit code 7")

    def test_it_runs_when_the_pods_of_all_roles_run(self, yard: Yard) -> None:
        ref = start(yard, role="chief", does=FOR_EVER)
        yard.wait(lambda: yard.look_at_all(ref, role="chief").status == JobStatus.RUNNING)
        assert {worker.phase for worker in yard.look_at_all(ref, role="chief").workers} == {"Running"}

    def test_a_stop_ends_every_role(self, yard: Yard) -> None:
        ref = start(yard, role="chief", does=FOR_EVER)
        yard.wait(lambda: yard.look_at_all(ref, role="chief").status == JobStatus.RUNNING)
        yard.cluster.suspend(ref)
        yard.wait(lambda: yard.look_at_all(ref, role="chief").ended)

        seen = yard.look_at_all(ref, role="chief")
        assert (seen.status, seen.reason, seen.pods_gone) == (None, Reason.STOPPED, True)

    def test_deleting_the_leader_removes_the_others(self, yard: Yard) -> None:
        ref = start(yard, role="chief", does=FOR_EVER)
        assert {job["metadata"]["name"] for job in yard.others(ref)} == {
            ref.name.replace("-chief", "-ps"),
            ref.name.replace("-chief", "-worker"),
        }
        yard.cluster.delete(ref, person=None)
        yard.wait(lambda: yard.cluster.find(ref) is None)

        assert yard.others(ref) == []
        assert yard.cluster.observe().pods == []

    def test_another_launch_of_the_same_finds_what_is_there(self, yard: Yard) -> None:
        first = yard.create(launcher="tensorflow", parameter_servers=1, job_id="again00000")
        again = yard.create(launcher="tensorflow", parameter_servers=1, job_id="again00000")
        assert (first.name, first.uid) == (again.name, again.uid)
        assert len(yard.others(first)) == 2


class TestFinding:
    def test_every_task_has_a_port_of_its_own_on_this_machine(self, yard: Yard) -> None:
        ref = start(yard, role="chief", does='echo "$TF_CONFIG"', otherwise=f'echo "$TF_CONFIG"; {FOR_EVER}')
        told = []
        for place in ("chief-0", "ps-0", "worker-0", "worker-1"):
            yard.wait_for_line(ref, "cluster", place)
            told.append(json.loads(yard.lines(ref, place)[0].text))

        assert [one["task"] for one in told] == [
            {"type": "chief", "index": 0},
            {"type": "ps", "index": 0},
            {"type": "worker", "index": 0},
            {"type": "worker", "index": 1},
        ]
        cluster = told[0]["cluster"]
        assert all(one["cluster"] == cluster for one in told)
        addresses = [address for tasks in cluster.values() for address in tasks]
        assert len(set(addresses)) == 4
        assert all(address.startswith("127.0.0.1:") for address in addresses)

    def test_without_parameter_servers_there_are_workers_only(self, yard: Yard) -> None:
        ref = yard.start('echo "$TF_CONFIG"', launcher="tensorflow", workers=2)
        assert yard.end_of(ref).status == JobStatus.SUCCEEDED
        config = json.loads(yard.lines(ref, "worker-1")[0].text)
        assert set(config["cluster"]) == {"worker"}
        assert config["task"] == {"type": "worker", "index": 1}

    def test_jax_is_told_where_the_first_process_waits(self, yard: Yard) -> None:
        ref = yard.start("echo $JAX_COORDINATOR_ADDRESS $JAX_PROCESS_ID/$JAX_NUM_PROCESSES", launcher="jax", workers=2)
        yard.end_of(ref)
        address, place = yard.text(ref, "worker-1").split()
        assert address.startswith("127.0.0.1:")
        assert yard.text(ref, "worker-0") == f"{address} 0/2"
        assert place == "1/2"

    def test_xgboost_is_told_of_one_tracker(self, yard: Yard) -> None:
        ref = yard.start(
            "echo $DMLC_TRACKER_URI:$DMLC_TRACKER_PORT $DMLC_TASK_ID/$DMLC_NUM_WORKER", launcher="xgboost", workers=2
        )
        yard.end_of(ref)
        tracker, _place = yard.text(ref, "worker-0").split()
        assert tracker.startswith("127.0.0.1:")
        assert yard.text(ref, "worker-1") == f"{tracker} 1/2"
