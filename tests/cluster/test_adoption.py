"""Jobs that people make with kubectl, on a real cluster: they wait in the portal's queue, and are its jobs from then on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.devcluster.programs import find
from jobs.cluster.observed import DELETED
from tests.cluster.connected import job
from tests.cluster.story import ClusterPortal, portal_on_cluster
from tests.portal.running import until

pytestmark = pytest.mark.cluster

VISION = "p-vision"
SAYS = ["sh", "-c", "for step in 1 2 3; do echo step $step loss=0.5; done; echo done"]
STAYS = "trap 'echo saved; exit {code}' TERM; echo ready; while true; do sleep 0.2; done"


@pytest.fixture(scope="module")
def portal(containers: None) -> Iterator[ClusterPortal]:
    with portal_on_cluster() as portal:
        until(lambda: may_create(portal, "alice"), seconds=60, what="alice may make Jobs in her project")
        yield portal


def kubectl(portal: ClusterPortal, *words: str, body: Any = None, name: str = "trainhall:local:alice") -> str:
    """What somebody types, with the name that the cluster knows them by; "" for an admin of the cluster."""
    argv = [str(find(portal.cluster, "kubectl")), "--kubeconfig", str(portal.cluster.kubeconfig), "-n", VISION]
    argv += ["--as", name] if name else []
    text = json.dumps(body) if body is not None else None
    done = subprocess.run([*argv, *words], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def may_create(portal: ClusterPortal, name: str) -> bool:
    try:
        return kubectl(portal, "auth", "can-i", "create", "jobs", name=f"trainhall:local:{name}").strip() == "yes"
    except AssertionError:
        return False


def make(
    portal: ClusterPortal,
    name: str,
    command: list[str],
    *,
    who: str = "trainhall:local:alice",
    but: str = "",
    **spec: Any,
) -> Any:
    """A Job that somebody makes with kubectl, and the portal's job that it becomes."""
    gpus = spec.pop("gpus", 0)
    resources = {"requests": {"cpu": "50m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}
    if gpus:
        resources["limits"]["nvidia.com/gpu"] = str(gpus)
    # a container that is called like nothing of the portal's
    body = job(name, container={"name": "trainer", "command": command, "resources": resources}, spec=spec)
    kubectl(portal, "create", "-f", "-", body=body, name=who)
    return taken_in(portal, name, but=but)


def taken_in(portal: ClusterPortal, name: str, *, but: str = "") -> Any:
    def found() -> Any:
        rows = portal.rest(f"jobs/?q={name}")["results"]
        return next((row for row in rows if row["name"] == name and row["id"] != but), None)

    row = until(found, seconds=15, what=f"{name} is in the portal's list")
    return portal.rest(f"jobs/{row['id']}/")


def uid_of(portal: ClusterPortal, name: str) -> str:
    return kubectl(portal, "get", "job", name, "-o", "jsonpath={.metadata.uid}")


def test_a_job_made_with_kubectl_waits_runs_and_is_charged_like_any_other(portal: ClusterPortal) -> None:
    made = make(portal, "by-hand", SAYS, parallelism=2, completions=2, gpus=1)
    assert (made["origin"], made["user"], made["namespace"]) == ("kubectl", "alice", "vision")
    assert made["resources"]["total_gpus"] == 2
    assert made["adopted"]["created_by"] == "trainhall:local:alice"
    over = portal.over(made["id"], "succeeded")
    assert [worker["exit_code"] for worker in over["workers"]] == [0, 0], over["workers"]
    for worker in over["workers"]:
        said = portal.lines(made["id"], worker["name"])
        assert said[0] == "step 1 loss=0.5" and said[-1] == "done", said
    # numbers that it prints are read, whatever its container is called
    (series,) = {one["key"] for one in portal.rest(f"jobs/{made['id']}/series/")["series"]}
    assert series == "loss"
    there = json.loads(kubectl(portal, "get", "job", "by-hand", "-o", "json"))
    assert there["metadata"]["labels"]["trainhall.io/job"] == made["id"], "it is its maker's, and stays"
    assert there["spec"]["activeDeadlineSeconds"] == 24 * 3600
    (charged,) = intervals(portal, made["id"])
    assert charged == "alice vision 2 2 True", charged


def test_the_shortest_command_is_enough(portal: ClusterPortal) -> None:
    words = ("create", "job", "shortest", "--image=localhost/busybox:1", "--", "sh", "-c", "echo I am $(id -u)")
    kubectl(portal, *words)
    made = taken_in(portal, "shortest")
    portal.over(made["id"], "succeeded")
    (said,) = portal.lines(made["id"])
    assert said.startswith("I am 21"), "with the numbers that the portal gives to who has none"


def intervals(portal: ClusterPortal, job_id: str) -> list[str]:
    """Whose account, and which namespace's: rows, GPUs, and whether all were closed."""
    program = (
        "from jobs.models import UsageInterval as U; "
        f"rows = list(U.objects.filter(worker__attempt__job='{job_id}').select_related('owner', 'namespace')); "
        "print('#', rows[0].owner, rows[0].namespace, len(rows), sum(r.gpus for r in rows), all(r.ended_at for r in rows))"
    )
    done = portal.manage("shell", "-v", "0", "-c", program)
    return [line[2:] for line in done.stdout.splitlines() if line.startswith("# ")]


def test_more_to_do_than_pods_at_one_time_is_done_by_two_workers(portal: ClusterPortal) -> None:
    made = make(portal, "in-turns", ["sh", "-c", "sleep 1; echo $HOSTNAME"], parallelism=2, completions=4)
    over = portal.over(made["id"], "succeeded", seconds=120)
    assert [worker["name"] for worker in over["workers"]] == ["worker-0", "worker-1"]
    assert over["reason"]["text"] == "Finished: all 4 workers ended with exit code 0."
    assert len(set(portal.lines(made["id"]))) >= 2


def test_a_failure_is_told_and_the_job_stays_for_its_maker(portal: ClusterPortal) -> None:
    made = make(portal, "fails", ["sh", "-c", "echo broken; exit 3"])
    over = portal.over(made["id"], "failed")
    assert (over["reason"]["code"], over["exit_code"]) == ("NonZeroExit", 3)
    assert kubectl(portal, "get", "job", "fails", "-o", "name").strip() == "job.batch/fails"


def test_what_can_never_fit_says_so_while_it_waits_and_goes_with_kubectl_delete(portal: ClusterPortal) -> None:
    made = make(portal, "too-large", SAYS, gpus=99)
    found = until(
        lambda: (one := portal.rest(f"jobs/{made['id']}/"))["reason"]["code"] == "NeverFits" and one,
        seconds=20,
        what="why it waits is said",
    )
    assert "99 GPUs" in found["reason"]["text"], found["reason"]
    kubectl(portal, "delete", "job", "too-large")
    over = portal.over(made["id"], "cancelled", seconds=20)
    assert over["reason"]["text"] == DELETED


def test_stopped_here_while_it_waits_it_goes_on_the_cluster_too(portal: ClusterPortal) -> None:
    made = make(portal, "unwanted", SAYS, gpus=99)
    portal.rest(f"jobs/{made['id']}/cancel/", {})
    portal.over(made["id"], "cancelled", seconds=10)
    until(lambda: not is_there(portal, "unwanted"), seconds=30, what="its Job is gone")


def is_there(portal: ClusterPortal, name: str) -> bool:
    return bool(kubectl(portal, "get", "job", name, "--ignore-not-found", "-o", "name"))


def runs(portal: ClusterPortal, name: str, *, code: int = 143) -> Any:
    made = make(portal, name, ["sh", "-c", STAYS.format(code=code)])
    until(lambda: "ready" in portal.lines(made["id"]), seconds=60, what="it runs")
    return made


def test_stopped_here_while_it_runs_it_saves_first(portal: ClusterPortal) -> None:
    made = runs(portal, "stopped")
    portal.rest(f"jobs/{made['id']}/cancel/", {"reason": "enough"})
    over = portal.over(made["id"], "cancelled")
    assert "Stopped by alice. enough" in over["reason"]["text"]
    assert portal.lines(made["id"])[-1] == "saved"
    assert not is_there(portal, "stopped")


def test_deleted_with_kubectl_while_it_runs_it_is_cancelled_and_made_again_it_is_another(portal: ClusterPortal) -> None:
    first = runs(portal, "again", code=0)  # that it ends well, being asked to, is no success
    assert first["adopted"]["uid"] == uid_of(portal, "again")
    kubectl(portal, "delete", "job", "again", "--wait=false")
    over = portal.over(first["id"], "cancelled", seconds=60)
    assert over["reason"]["text"] == DELETED
    assert portal.lines(first["id"])[-1] == "saved", "it had its grace"
    second = make(portal, "again", ["sh", "-c", "echo second"], but=first["id"])
    assert second["adopted"]["uid"] not in ("", first["adopted"]["uid"])
    portal.over(second["id"], "succeeded")
    assert portal.lines(second["id"]) == ["second"]


def test_who_is_not_known_here_is_said_to_be_unknown(portal: ClusterPortal) -> None:
    made = make(portal, "by-an-admin", SAYS, who="")
    assert (made["user"], made["adopted"]["is_known"]) == ("unknown", False)
    assert made["adopted"]["created_by"]
    portal.over(made["id"], "succeeded")


def test_what_a_cron_job_makes_is_taken_in(portal: ClusterPortal) -> None:
    template = job("any", container={"name": "nightly", "command": ["echo", "night"]})["spec"]["template"]
    nightly = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"backoffLimit": 0, "template": template}}},
    }
    kubectl(portal, "create", "-f", "-", body=nightly, name="")
    kubectl(portal, "create", "job", "nightly-1", "--from=cronjob/nightly", name="")
    owners = json.loads(kubectl(portal, "get", "job", "nightly-1", "-o", "json"))["metadata"]["ownerReferences"]
    assert [owner["kind"] for owner in owners] == ["CronJob"]
    portal.over(taken_in(portal, "nightly-1")["id"], "succeeded")


@pytest.mark.parametrize("point", ["adopt.before_commit", "adopt.after_commit", "launch.after_release"])
def test_killed_in_between_it_is_taken_in_and_started_once(portal: ClusterPortal, point: str) -> None:
    name = point.replace(".", "-").replace("_", "-")
    fault = Path(portal.settings["TRAINHALL_FAULT_DIR"], point)
    fault.parent.mkdir(exist_ok=True)
    fault.touch()
    made = make(portal, name, SAYS)
    portal.over(made["id"], "succeeded", seconds=120)
    assert not fault.exists(), "nobody died"
    assert [row["id"] for row in portal.rest(f"jobs/?q={name}")["results"]] == [made["id"]]
    assert portal.lines(made["id"])[-1] == "done" and len(portal.lines(made["id"])) == 4


def test_it_is_the_projects_to_see_its_makers_to_stop_and_nobody_elses(portal: ClusterPortal) -> None:
    made = runs(portal, "seen")
    with pytest.raises(AssertionError, match="forbidden"):
        kubectl(portal, "create", "job", "mine", "--image=localhost/busybox:1", name="trainhall:local:dave")
    bob, dave = portal.visitor("bob"), portal.visitor("dave")
    for path in (f"/jobs/{made['id']}/", f"/api/v1/jobs/{made['id']}/", f"/api/v1/jobs/{made['id']}/logs/"):
        assert bob.ask("GET", path)[0] == 200
        assert dave.ask("GET", path)[0] == 404
    assert bob.ask("POST", f"/api/v1/jobs/{made['id']}/cancel/", document={})[0] == 403
    assert dave.ask("POST", f"/api/v1/jobs/{made['id']}/cancel/", document={})[0] == 404
    assert "seen" not in dave.ask("GET", "/api/v1/jobs/")[1]
    kubectl(portal, "delete", "job", "seen", name="trainhall:local:bob")  # the cluster lets members do that
    portal.over(made["id"], "cancelled", seconds=60)
