"""What an attempt looks like on a cluster, compared with files that people read and review.

After a wanted change: TRAINHALL_UPDATE_GOLDEN=1 pytest tests/jobs/test_manifests.py, then look at `git diff`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from jobs.cluster.local.translate import expand
from jobs.cluster.manifests import (
    MASK,
    Rendering,
    is_same,
    label_value,
    manifest_for_people,
    render,
)
from jobs.cluster.rendering import Home, literal
from jobs.spec import JobSpec, Resources, SecretRef, Volume

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "manifests"

PLAIN = Rendering(
    spec=JobSpec(
        namespace="vision",
        name="digits",
        runtime="numpy",
        image="ml/numpy:1",
        command="python train.py",
        time_limit=14400,
    ),
    job_id="7f3k2p9m4x",
    attempt=1,
    instance="main",
    kubernetes_namespace="p-vision",
    username="alice",
    internal_url="http://trainhall.trainhall-system:8000",
    token="ta_canary",
    argv=["/bin/sh", "-c", "python train.py --lr 0.1"],
    helper_image="registry.example.org/trainhall:1.0",
)
GANG = replace(
    PLAIN,
    spec=replace(
        PLAIN.spec,
        image="ml/pytorch:2.13",
        launcher="torchrun",
        priority="high",
        stop_grace=300,
        env={"OMP_NUM_THREADS": "4", "PYTHONPATH": "/workspace/src", "TRAINHALL_URL": "http://forged/"},
        secrets=(SecretRef("HF_TOKEN"), SecretRef("WANDB_API_KEY", from_secret="team-keys", key="wandb")),
        volumes=(Volume("datasets", "/data"),),
        resources=Resources(
            workers=4, gpus=8, gpu_type="V100", cpu_millis=64000, memory_bytes=512 * 2**30, shm_bytes=64 * 2**30
        ),
    ),
    launcher="torchrun",
    attempt=3,
    username="Ärger, J.",
    code_url="http://trainhall.trainhall-system:8000/code/9f2c/?signature=canary",
    code_sha256="9f2c4a7e",
    secret_env={"HF_TOKEN": "hf_canary"},
    resume_from="/runs/7f3k2p9m4x/ckpt/last",
    identity=(20123, 20000, (30017, 20000)),
    topology=("topology.trainhall.io/rack", "topology.trainhall.io/block"),
    close_to=("topology.trainhall.io/rack", "r7"),
)


def launched_by(launcher: str, **resources: Any) -> Rendering:
    """Two workers with two GPUs each, found by that launcher."""
    size = Resources(**{"workers": 2, "gpus": 2, "cpu_millis": 8000, "memory_bytes": 32 * 2**30, **resources})
    return replace(
        PLAIN,
        spec=replace(PLAIN.spec, launcher=launcher, resources=size),
        launcher=launcher,
        identity=(20123, 20000, ()),
    )


AT_HOME = replace(
    PLAIN,
    spec=replace(PLAIN.spec, volumes=(Volume("datasets", "/data"), Volume("scratch", "/scratch", read_only=False))),
    identity=(20123, 20000, ()),
    home=Home(claim="homes", mount="/home", path="/home/alice"),
)
JAX = launched_by("jax")
XGBOOST = launched_by("xgboost")
MIRRORED = launched_by("tensorflow")
PARAMETER_SERVERS = launched_by("tensorflow", parameter_servers=2, gpu_type="V100", shm_bytes=2**30)
MPI = replace(launched_by("mpi", shm_bytes=2**30), ssh_key=("private canary", "ssh-ed25519 AAAA"))
ALL = {
    "plain": PLAIN,
    "gang": GANG,
    "home": AT_HOME,
    "jax": JAX,
    "xgboost": XGBOOST,
    "mirrored": MIRRORED,
    "parameter_servers": PARAMETER_SERVERS,
    "mpi": MPI,
}


@pytest.mark.parametrize(("name", "job"), ALL.items())
def test_the_manifests_are_those_that_were_reviewed(name: str, job: Rendering) -> None:
    written = json.dumps(asdict(render(job)), indent=2, ensure_ascii=False) + "\n"
    path = GOLDEN / f"{name}.json"
    if os.environ.get("TRAINHALL_UPDATE_GOLDEN"):
        path.write_text(written)

    assert written == path.read_text()


@pytest.mark.parametrize("version", ["1.31", "1.37"])
@pytest.mark.parametrize("job", ALL.values(), ids=ALL)
def test_kubernetes_takes_them(job: Rendering, version: str) -> None:
    """Every field is known to that version and of its kind."""
    for manifest in [*render(job).jobs, render(job).service, render(job).secret]:
        assert kubernetes_validate.validate(manifest, version, strict=True) == version


class TestSecrets:
    def test_only_the_secret_holds_them(self) -> None:
        objects = render(GANG)

        assert "canary" not in json.dumps([*objects.jobs, objects.service])
        assert objects.secret is not None
        assert set(objects.secret["stringData"]) == {"token", "code-url", "env.HF_TOKEN"}

    def test_people_see_names_and_no_values(self) -> None:
        objects = render(GANG)
        shown = manifest_for_people(objects)

        assert [manifest["kind"] for manifest in shown] == ["Job", "Service", "Secret"]
        assert "canary" not in json.dumps(shown)
        assert set(shown[-1]["stringData"].values()) == {MASK}
        assert objects.secret is not None
        assert objects.secret["stringData"]["token"] == "ta_canary", "what is shown is a copy"

    def test_our_token_is_not_sent_to_an_mlflow_of_the_users(self) -> None:
        assert "MLFLOW_TRACKING_TOKEN" in environment(PLAIN)
        elsewhere = with_env(PLAIN, {"MLFLOW_TRACKING_URI": "https://mlflow.example.org"})
        assert "MLFLOW_TRACKING_TOKEN" not in environment(elsewhere)


class TestEnvironment:
    def test_the_index_comes_first_so_that_the_rest_can_use_it(self) -> None:
        for job in (PLAIN, GANG):
            names = [entry["name"] for entry in main(job)["env"]]
            assert names[0] == "JOB_COMPLETION_INDEX"
            assert len(names) == len(set(names))
            for position, entry in enumerate(main(job)["env"]):
                used = [name for name in names if f"$({name})" in entry.get("value", "")]
                assert set(used) <= set(names[:position])

    @pytest.mark.parametrize("name", ["RANK", "MASTER_PORT", "HOME", "PYTHONUNBUFFERED", "MLFLOW_TRACKING_URI"])
    def test_the_users_values_win(self, name: str) -> None:
        assert environment(with_env(PLAIN, {name: "mine"}))[name] == "mine"

    @pytest.mark.parametrize("name", ["TRAINHALL_URL", "TRAINHALL_JOB_ID", "TRAINHALL_TOKEN_FILE", "TRAINHALL_ATTEMPT"])
    def test_but_not_over_who_the_pod_is(self, name: str) -> None:
        forged = with_env(PLAIN, {name: "forged"})
        forged = replace(forged, spec=replace(forged.spec, secrets=(SecretRef(name),)))
        assert environment(forged)[name] == environment(PLAIN)[name]

    def test_nor_over_the_index(self) -> None:
        assert environment(with_env(PLAIN, {"JOB_COMPLETION_INDEX": "7"}))["JOB_COMPLETION_INDEX"] is None

    @pytest.mark.parametrize("text", ["$(RANK)", "$$", "a$", "$$(x)$$$", "$x ${x} $(date)", "", "50 %"])
    def test_what_a_user_typed_arrives_as_written(self, text: str) -> None:
        assert expand(literal(text), {"RANK": "0", "x": "1", "date": "today"}) == text

    def test_an_unknown_launcher_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="slurm"):
            render(replace(PLAIN, launcher="slurm"))


class TestPodSecurity:
    def test_nothing_of_the_cluster_is_in_reach(self) -> None:
        pod = render(GANG).leader["spec"]["template"]["spec"]

        assert pod["automountServiceAccountToken"] is False
        for container in (*pod["initContainers"], *pod["containers"]):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]

    def test_one_attempt_is_one_object_that_never_restarts(self) -> None:
        job = render(GANG).leader["spec"]

        assert (job["suspend"], job["backoffLimit"], job["podReplacementPolicy"]) == (True, 0, "Failed")
        assert job["template"]["spec"]["restartPolicy"] == "Never"
        assert job["activeDeadlineSeconds"] == 14400


class TestVolumes:
    def test_a_home_changes_nothing_of_what_was_asked_for(self) -> None:
        """So that one that is offered, or taken back, while a launch is repeated makes no other job of it."""
        homeless = replace(AT_HOME, home=None, read_only_claims=frozenset({"scratch"}))
        assert is_same(render(homeless).leader, render(AT_HOME).leader)
        assert environment(homeless)["HOME"] == "/workspace"

    def test_what_is_offered_read_only_by_now_is_mounted_read_only(self) -> None:
        job = replace(AT_HOME, read_only_claims=frozenset({"scratch"}))
        (mount,) = [one for one in main(job)["volumeMounts"] if one["name"] == "v-scratch"]
        assert mount == {"name": "v-scratch", "mountPath": "/scratch", "readOnly": True}
        volumes = render(job).leader["spec"]["template"]["spec"]["volumes"]
        assert {"claimName": "scratch", "readOnly": True} in [one.get("persistentVolumeClaim") for one in volumes]

    def test_a_job_that_names_its_home_has_it_once(self) -> None:
        job = replace(AT_HOME, spec=replace(AT_HOME.spec, volumes=(Volume("homes", "/home"),)))
        assert [one["name"] for one in main(job)["volumeMounts"] if one["mountPath"] == "/home"] == ["v-homes"]
        assert environment(job)["HOME"] == "/home/alice"


class TestIdentity:
    def test_a_repetition_is_the_same_whatever_its_url_and_token(self) -> None:
        first, again = render(GANG), render(replace(GANG, code_url="http://x/?expires=2", token="ta_other"))
        assert is_same(first.leader, again.leader)

    def test_another_command_attempt_or_portal_is_not(self) -> None:
        first = render(PLAIN).leader
        for other in (
            replace(PLAIN, argv=["/bin/sh", "-c", "python train.py --lr 0.2"]),
            replace(PLAIN, attempt=2),
            replace(PLAIN, instance="staging"),
        ):
            assert not is_same(first, render(other).leader)
        assert not is_same({"metadata": {"name": "j-7f3k2p9m4x-1"}}, first)

    @pytest.mark.parametrize("name", ["_admin", "-x", "Ärger", "a@b.c", "x" * 80, "🙂", "a_", ""])
    def test_a_label_is_valid_for_any_name(self, name: str) -> None:
        import re

        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", label_value(name))

    def test_two_names_never_share_a_label(self) -> None:
        names = ["j.doe", "j_doe", "j-doe", "J.Doe", "j doe", "j@doe", "x" * 64, "x" * 65]
        assert len({label_value(name) for name in names}) == len(names)


def main(job: Rendering) -> dict[str, Any]:
    return render(job).leader["spec"]["template"]["spec"]["containers"][0]


def environment(job: Rendering) -> dict[str, str | None]:
    """Name to value; None where it comes from elsewhere."""
    return {entry["name"]: entry.get("value") for entry in main(job)["env"]}


def with_env(job: Rendering, env: dict[str, str]) -> Rendering:
    return replace(job, spec=replace(job.spec, env=env))
