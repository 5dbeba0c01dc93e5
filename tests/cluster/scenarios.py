"""The truth table of RELIABILITY F10 on a real server: what is brought about, and what it means for a person.

Most of it the controllers do themselves: quota, scheduling, preemption, eviction, taints, deadlines, failure policies. What a
kubelet does is written as a kubelet writes it, and checked by the API server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs.cluster.fields import is_true
from tests.cluster.scene import (
    LAST,
    RUNNING,
    Raw,
    Scene,
    Stage,
    containers,
    disrupted,
    ready,
    terminated,
    waiting,
)

GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Scenario:
    play: Callable[[Stage], Scene]
    status: str | None
    reason_code: str | None
    exit_code: int | None = None
    ended: bool = False
    deleted: bool = False
    stopped: bool = False


SCENARIOS: dict[str, Scenario] = {}
Player = Callable[[Stage], Scene]


def scenario(
    name: str,
    status: str | None,
    reason: str | None,
    code: int | None = None,
    *,
    ended: bool | None = None,
    deleted: bool = False,
    stopped: bool = False,
) -> Callable[[Player], Player]:
    def keep(play: Player) -> Player:
        assert name not in SCENARIOS, name
        over = status in ("succeeded", "failed") if ended is None else ended
        SCENARIOS[name] = Scenario(play, status, reason, code, over, deleted, stopped)
        return play

    return keep


def each(rows: dict[str, tuple[Any, ...]], make: Callable[..., Player]) -> None:
    """name: (status, reason, exit code, what `make` needs)."""
    for name, (status, reason, code, *needs) in rows.items():
        scenario(name, status, reason, code)(make(*needs))


# Before there are pods


@scenario("created, not released", "starting", "Admitted")
def _(stage: Stage) -> Scene:
    return Scene(stage).create(suspend=True)


@scenario("released, and no controller has seen it yet", "starting", "Admitted")
def _(stage: Stage) -> Scene:
    return Scene(stage).create(managedBy="trainhall.io/test", podFailurePolicy=None, podReplacementPolicy=None)


def in_a_namespace_with(kind: str, body: Raw, path: str = "", labels: Raw | None = None, **options: Any) -> Player:
    """Pods that the API server refuses to make: only an event of the Job says so (R32)."""

    def play(stage: Stage) -> Scene:
        name = f"{stage.namespace}-{next(stage.numbers)}"
        stage.plane.namespace(name)
        if labels:
            stage.plane.send(
                "PATCH",
                f"/api/v1/namespaces/{name}",
                {"metadata": {"labels": labels}},
                kind="application/merge-patch+json",
            )
        if kind:
            stage.plane.send(
                "POST", f"{path or '/api/v1'}/namespaces/{name}/{kind}", {"metadata": {"name": "rule"}, **body}
            )
            if kind == "resourcequotas":
                quota = f"/api/v1/namespaces/{name}/resourcequotas/rule"
                scene = Scene(stage, name)
                scene.until(lambda: stage.plane.send("GET", quota).get("status", {}).get("hard"), "the quota counts")
        return Scene(stage, name).create(**options).refused()

    return play


def quota(**hard: str) -> Raw:
    return {"spec": {"hard": {key.replace("__", "."): value for key, value in hard.items()}}}


BARE = {"containers": [{"name": "main", "image": "x"}], "initContainers": []}
LIMITS = {"spec": {"limits": [{"type": "Container", "max": {"memory": "16Mi"}}]}}
LEAST = {"spec": {"limits": [{"type": "Container", "min": {"cpu": "40"}}]}}
each(
    {
        "quota of pods used up": ("starting", "QuotaExceeded", None, "resourcequotas", quota(pods="0")),
        "quota of memory used up": ("starting", "QuotaExceeded", None, "resourcequotas", quota(requests__memory="1Mi")),
        "more memory than one container may have": ("starting", "NotAllowed", None, "limitranges", LIMITS),
        "less CPU than one container must have": ("starting", "NotAllowed", None, "limitranges", LEAST),
    },
    lambda kind, body: in_a_namespace_with(kind, body),
)
scenario("a quota of what the pod does not say", "starting", "NotAllowed")(
    in_a_namespace_with("resourcequotas", quota(limits__cpu="4"), pod=BARE, podFailurePolicy=None)
)
scenario("pod security refuses a privileged pod", "starting", "NotAllowed")(
    in_a_namespace_with("", {}, labels={"pod-security.kubernetes.io/enforce": "restricted"}, pod={"hostNetwork": True})
)
scenario("a priority class that is not there", "starting", "ClusterNotSetUp")(
    in_a_namespace_with("", {}, pod={"priorityClassName": "nope"})
)
scenario("an account that is not there", "starting", "ClusterNotSetUp")(
    in_a_namespace_with("", {}, pod={"serviceAccountName": "nope"})
)


@scenario("quota refuses the second of two workers", "starting", "QuotaExceeded")
def _(stage: Stage) -> Scene:
    name = f"{stage.namespace}-{next(stage.numbers)}"
    stage.plane.namespace(name)
    stage.plane.send(
        "POST", f"/api/v1/namespaces/{name}/resourcequotas", {"metadata": {"name": "rule"}, **quota(pods="1")}
    )
    path = f"/api/v1/namespaces/{name}/resourcequotas/rule"
    scene = Scene(stage, name)
    scene.until(lambda: stage.plane.send("GET", path).get("status", {}).get("hard"), "the quota counts")
    return scene.create(workers=2).refused().until(lambda: len(scene.pods()) == 1, "the first pod")


# Waiting for a machine: the scheduler's own words


def never_scheduled(pod: Raw | None = None, **options: Any) -> Player:
    return lambda stage: Scene(stage).create(pod=pod, **options).unschedulable()


def asking(**resources: str) -> Raw:
    asked = {key.replace("gpu", GPU): value for key, value in resources.items()}
    return {
        "containers": [{"name": "main", "image": "x", "resources": {"requests": asked, "limits": asked}}],
        "initContainers": [],
    }


def unbound(stage: Stage) -> Scene:
    claim = {"metadata": {"name": "unbound"}, "spec": {"storageClassName": "none", "accessModes": ["ReadWriteOnce"]}}
    claim["spec"] |= {"resources": {"requests": {"storage": "1Gi"}}}
    stage.plane.send("POST", f"/api/v1/namespaces/{stage.namespace}/persistentvolumeclaims", claim)
    return Scene(stage).create(pod=with_claim("unbound")).unschedulable()


def with_claim(name: str) -> Raw:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


FREE = {"podFailurePolicy": None}  # without a container `setup` the rules that name it are refused
scenario("more GPUs than any machine has", "starting", "WaitingForCapacity")(never_scheduled(asking(gpu="99"), **FREE))
scenario("more memory than any machine has", "starting", "WaitingForCapacity")(
    never_scheduled(asking(memory="99Ti"), **FREE)
)
scenario("no machine of that kind", "starting", "WaitingForCapacity")(never_scheduled(node="nowhere"))
scenario("the machines are reserved", "starting", "WaitingForCapacity")(
    never_scheduled({"tolerations": []}, node="kwok")
)
scenario("a scheduling gate", "starting", "WaitingForCapacity")(
    never_scheduled({"schedulingGates": [{"name": "example.org/gate"}]})
)
scenario("a volume that is not there", "starting", "VolumeMissing")(never_scheduled(with_claim("nope")))
scenario("a volume that is not bound", "starting", "VolumeUnavailable")(unbound)


@scenario("nobody has looked for a machine yet", "starting", "Admitted")
def _(stage: Stage) -> Scene:
    scene = Scene(stage).create(pod={"schedulerName": "nobody"})
    return scene.until(scene.pods, "its pod")


# On a machine, and not running yet


def pending(**status: Any) -> Player:
    return lambda stage: Scene(stage).started().write(phase="Pending", **status)


def stuck(reason: str, message: str = "", *, image: str = "ml/numpy:1") -> Player:
    return pending(**containers(main=waiting(reason, message), image=image))


PULL = 'Error response: failed to pull and unpack image "ml/numpy:1": '
each(
    {
        "its container is being made": ("starting", "Admitted", None, "ContainerCreating"),
        "no such image": ("starting", "ImageNotFound", None, "ErrImagePull", PULL + "ml/numpy:1: not found"),
        "no such registry": (
            "starting",
            "ImageNotFound",
            None,
            "ErrImagePull",
            PULL + "dial tcp: lookup ml.example.org: no such host",
        ),
        "not allowed to pull": (
            "starting",
            "ImageNotFound",
            None,
            "ErrImagePull",
            PULL + "pull access denied, repository does not exist or may require authorization",
        ),
        "the registry's limit": (
            "starting",
            "RegistryUnavailable",
            None,
            "ErrImagePull",
            PULL + "429 Too Many Requests - toomanyrequests: You have reached your pull rate limit",
        ),
        "the registry is down": (
            "starting",
            "RegistryUnavailable",
            None,
            "ErrImagePull",
            PULL + "dial tcp 10.0.0.9:443: connect: connection refused",
        ),
        "image back-off": (
            "starting",
            "ImageNotFound",
            None,
            "ImagePullBackOff",
            'Back-off pulling image "ml/numpy:1"',
        ),
        "not an image name": (
            "starting",
            "ImageNotFound",
            None,
            "InvalidImageName",
            'Failed to apply default image tag "ML/Numpy": invalid reference format: repository name must be lowercase',
        ),
        "the image may not be pulled": (
            "starting",
            "ImageNotFound",
            None,
            "ErrImageNeverPull",
            'Container image "ml/numpy:1" is not present with pull policy of Never',
        ),
        "a secret is missing": (
            "starting",
            "SecretMissing",
            None,
            "CreateContainerConfigError",
            'secret "wandb" not found',
        ),
        "a config map is missing": (
            "starting",
            "SecretMissing",
            None,
            "CreateContainerConfigError",
            'configmap "settings" not found',
        ),
        "a key of a secret is missing": (
            "starting",
            "SecretMissing",
            None,
            "CreateContainerConfigError",
            "couldn't find key token in Secret u-alice/wandb",
        ),
        "the image runs as root": (
            "starting",
            "NotAllowed",
            None,
            "CreateContainerConfigError",
            'container has runAsNonRoot and image will run as root (pod: "x_u-alice(1)", container: main)',
        ),
        "its container cannot be made": (
            "starting",
            "SettingUp",
            None,
            "CreateContainerError",
            "failed to reserve container name main_0: name is reserved",
        ),
    },
    stuck,
)
scenario("setup runs", "starting", "SettingUp")(pending(**containers(setup=RUNNING, agent=waiting("PodInitializing"))))
scenario("the helper's image cannot be pulled", "starting", "ImageNotFound")(
    pending(**containers(setup=waiting("ErrImagePull", PULL + "not found"), agent=waiting("PodInitializing")))
)
scenario("setup is done, main is being made", "starting", "Admitted")(
    pending(**containers(main=waiting("ContainerCreating")))
)


def warned(reason: str, message: str) -> Player:
    def play(stage: Stage) -> Scene:
        main = containers(
            main=waiting("PodInitializing"), setup=waiting("PodInitializing"), agent=waiting("PodInitializing")
        )
        return Scene(stage).started().write(phase="Pending", **main).warn(reason, message)

    return play


each(
    {
        "a secret to mount is missing": (
            "starting",
            "SecretMissing",
            None,
            "FailedMount",
            'MountVolume.SetUp failed for volume "token" : secret "token" not found',
        ),
        "R34: NFS does not answer": (
            "starting",
            "VolumeUnavailable",
            None,
            "FailedMount",
            'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32 mount.nfs: Connection timed out',
        ),
        "NFS refuses": (
            "starting",
            "VolumeUnavailable",
            None,
            "FailedMount",
            'MountVolume.SetUp failed for volume "data" : mount failed: mount.nfs: access denied by server while mounting',
        ),
        "a volume does not attach": (
            "starting",
            "VolumeUnavailable",
            None,
            "FailedAttachVolume",
            'AttachVolume.Attach failed for volume "pv-1" : timed out',
        ),
        "the sandbox cannot be made": (
            "starting",
            "MachineFault",
            None,
            "FailedCreatePodSandBox",
            'Failed to create pod sandbox: rpc error: code = Unknown desc = plugin type="bridge" failed',
        ),
        "devices cannot be made ready": (
            "starting",
            "MachineFault",
            None,
            "FailedPrepareDynamicResources",
            "Failed to prepare dynamic resources: timed out",
        ),
    },
    warned,
)


@scenario("one of two workers runs", "starting", "Admitted")
def _(stage: Stage) -> Scene:
    return (
        Scene(stage)
        .started(workers=2)
        .run(0)
        .write(1, phase="Pending", **containers(main=waiting("ContainerCreating")))
    )


@scenario("one runs, the other has no machine", "starting", "WaitingForCapacity")
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(workers=1)
    scene.run(0)
    spread = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"trainhall.io/role": "worker"}}}
        ]
    }
    alone = Scene(stage).create(workers=2, pod={"affinity": {"podAntiAffinity": spread}})
    return alone.unschedulable()


@scenario("one runs, the other has no image", "starting", "ImageNotFound")
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(workers=2).run(0)
    return scene.write(1, phase="Pending", **containers(main=waiting("ImagePullBackOff")))


@scenario("it runs and is not ready", "starting", "Admitted")
def _(stage: Stage) -> Scene:
    main = containers(main=RUNNING)
    main["containerStatuses"][0]["ready"] = False
    not_ready = ready("False", "ContainersNotReady", "containers with unready status: [main]")
    return Scene(stage).started().write(phase="Running", conditions=[not_ready], **main)


# Running


@scenario("it runs", "running", None)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).faked()
    return scene.until(lambda: [pod["status"]["phase"] for pod in scene.pods()] == ["Running"], "its pod runs")


@scenario("four of four run", "running", None)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).faked(workers=4)
    return scene.until(lambda: [pod["status"]["phase"] for pod in scene.pods()] == ["Running"] * 4, "its pods run")


@scenario("one is done, the other runs on", "running", None)
def _(stage: Stage) -> Scene:
    return Scene(stage).started(workers=2).end(0, 0).run(1)


@scenario("the agent was started again", "running", None)
def _(stage: Stage) -> Scene:
    return Scene(stage).started().write(phase="Running", conditions=[ready()], **containers(main=RUNNING, restarts=3))


@scenario("the agent keeps ending, the program runs", "running", None)
def _(stage: Stage) -> Scene:
    parts = containers(
        main=RUNNING, agent=waiting("CrashLoopBackOff", "back-off 40s restarting failed container=agent"), restarts=5
    )
    not_ready = ready("False", "ContainersNotReady", "containers with unready status: [agent]")
    return Scene(stage).started().write(phase="Running", conditions=[not_ready], **parts)


# Success


@scenario("exit 0", "succeeded", "Completed", 0)
def _(stage: Stage) -> Scene:
    return Scene(stage).faked(0).says("Complete")


@scenario("all of three end well", "succeeded", "Completed", 0)
def _(stage: Stage) -> Scene:
    return Scene(stage).faked(0, workers=3).says("Complete")


@scenario("R23: out of memory with exit code 0", "succeeded", "OutOfMemory", 0)
def _(stage: Stage) -> Scene:
    return Scene(stage).started().end(0, 0, "OOMKilled").says("Complete")


@scenario("the agent was killed at the end, the program ended well", "succeeded", "Completed", 0)
def _(stage: Stage) -> Scene:
    parts = containers(main=terminated(0), agent=terminated(137))
    return Scene(stage).started().write(phase="Succeeded", **parts).says("Complete")


@scenario("its pod has ended well, the Job does not say so yet", "succeeded", "Completed", 0)
def _(stage: Stage) -> Scene:
    return unmanaged(stage, managedBy="trainhall.io/test").end_of_pod(0)


@scenario("complete, and its pods are gone", "succeeded", "Completed", 0)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).faked(0).says("Complete")
    scene.force_delete_pod()
    return scene.until(lambda: not scene.pods(), "its pod is gone")


@scenario("R26: evicted, then success by retries of its own", "succeeded", "Completed", 0)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(backoffLimit=3, podFailurePolicy=None)
    scene.write(0, phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    scene.until(
        lambda: any(pod["status"]["phase"] == "Pending" and pod["spec"].get("nodeName") for pod in scene.pods()),
        "a second pod",
    )
    index = next(i for i, pod in enumerate(scene.pods()) if pod["status"]["phase"] == "Pending")
    return scene.end(index, 0).says("Complete")


@scenario("R19: everything is deleted right after success", "succeeded", "Completed", 0, deleted=True)
def _(stage: Stage) -> Scene:
    return Scene(stage).started().end(0, 0).delete()


# Failures of the program: fake nodes end their pods so, and the Job's rules are the portal's own

each(
    {
        "exit 1": ("failed", "NonZeroExit", 1, 1),
        "exit 2": ("failed", "NonZeroExit", 2, 2),
        "exit 75": ("failed", "NonZeroExit", 75, 75),
        "exit 255": ("failed", "NonZeroExit", 255, 255),
        "SIGKILL without a word of memory": ("failed", "KilledBySignal", 137, 137),
        "SIGTERM that nobody here sent": ("failed", "KilledBySignal", 143, 143),
        "segmentation fault": ("failed", "KilledBySignal", 139, 139),
        "abort": ("failed", "KilledBySignal", 134, 134),
        "a shell does not find the command": ("failed", "CommandNotFound", 127, 127),
        "a shell may not execute the command": ("failed", "CommandNotFound", 126, 126),
    },
    lambda code: lambda stage: Scene(stage).faked(code).says("Failed"),
)


def ended(code: int, reason: str = "", message: str = "", **more: Any) -> Player:
    def play(stage: Stage) -> Scene:
        parts = containers(main=terminated(code, reason, message=message, **more))
        return Scene(stage).started().write(phase="Failed", **parts).says("Failed")

    return play


each(
    {
        "out of memory": ("failed", "OutOfMemory", 137, 137, "OOMKilled"),
        "out of memory, and the program says 1": ("failed", "OutOfMemory", 1, 1, "OOMKilled"),
        "the command is not in the image": (
            "failed",
            "CommandNotFound",
            128,
            128,
            "StartError",
            'failed to create containerd task: exec: "trian": executable file not found in $PATH',
        ),
        "the container cannot run": ("failed", "CommandNotFound", 127, 127, "ContainerCannotRun"),
        "an exception": ("failed", "NonZeroExit", 1, 1, "Error", "Traceback (most recent call last):\nKeyError: 'x'"),
        "its status is not known": (
            "failed",
            "OutcomeUnknown",
            None,
            137,
            "ContainerStatusUnknown",
            "The container could not be located when the pod was terminated",
        ),
    },
    ended,
)


def failed_setup(code: int, reason: str = "") -> Player:
    parts = containers(setup=terminated(code, reason, message="digest differs"), agent=waiting("PodInitializing"))
    return lambda stage: Scene(stage).started().write(phase="Failed", **parts).says("Failed")


scenario("setup fails", "failed", "SetupFailed", 3)(failed_setup(3))
scenario("setup is out of memory", "failed", "SetupFailed", 137)(failed_setup(137, "OOMKilled"))
scenario("it failed, and no container ever said anything", "failed", "OutcomeUnknown")(
    lambda stage: Scene(stage).started().write(phase="Failed").says("Failed")
)


@scenario("it failed, and its pods are gone", "failed", "OutcomeUnknown")
def _(stage: Stage) -> Scene:
    scene = Scene(stage).faked(1).says("Failed")
    scene.force_delete_pod()
    return scene.until(lambda: not scene.pods(), "its pod is gone")


# Gangs


@scenario("a rank fails, the others are ended for it", "failed", "NonZeroExit", 7)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(workers=3).run(0).run(2).end(1, 7)
    scene.says("FailureTarget")
    for index in (0, 2):
        scene.end(index, 143 if index else 137, at=LAST)
    return scene.says("Failed")


@scenario("a rank has failed, the others still end", None, "NonZeroExit", 7)
def _(stage: Stage) -> Scene:
    return Scene(stage).started(workers=2).run(0).end(1, 7).says("FailureTarget")


@scenario("of two that failed the first is to blame", "failed", "NonZeroExit", 9)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(workers=2)
    scene.end(0, 1, at=LAST)
    return scene.end(1, 9, at="2026-01-01T00:05:00Z").says("Failed")


@scenario("one of a gang is out of memory", "failed", "OutOfMemory", 137)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(workers=2).run(1).end(0, 137, "OOMKilled").says("FailureTarget")
    return scene.end(1, 143, at=LAST).says("Failed")


@scenario("half a gang ended well, then everything was deleted", "failed", "OutcomeUnknown", deleted=True)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(workers=2).end(0, 0)
    scene.delete()
    scene.kept_pods = scene.kept_pods[:1]
    scene.kept_job = {"spec": {"parallelism": 2}}  # what the portal knows of a Job that is gone
    return scene


# The time limit


@scenario("its time limit", "failed", "TimeLimit")
def _(stage: Stage) -> Scene:
    return Scene(stage).faked(activeDeadlineSeconds=2).says("Failed")


@scenario("its time limit, and it still ends", None, "TimeLimit")
def _(stage: Stage) -> Scene:
    return Scene(stage).started(activeDeadlineSeconds=1).run().says("FailureTarget")


@scenario("its time limit, with the exit code of its end", "failed", "TimeLimit", 143)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(activeDeadlineSeconds=1).run().says("FailureTarget")
    return scene.end(0, 143).says("Failed")


@scenario("a time limit of the pod itself", "failed", "TimeLimit")
def _(stage: Stage) -> Scene:
    words = "Pod was active on the node longer than the specified deadline"
    return Scene(stage).started().write(phase="Failed", reason="DeadlineExceeded", message=words).says("Failed")


# The platform's doing


@scenario("preempted", "failed", "Preempted")
def _(stage: Stage) -> Scene:
    stage.add_node("small-1", kind="small")
    for name, value in (("low", 1), ("high", 1000)):
        body = {"metadata": {"name": f"{stage.namespace}-{name}"}, "value": value}
        stage.plane.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    whole = asking(gpu="8")
    victim = Scene(stage).create(
        node="small", pod=whole | {"priorityClassName": f"{stage.namespace}-low"}, podFailurePolicy=DISRUPTIONS
    )
    victim.until(lambda: any(pod["spec"].get("nodeName") for pod in victim.pods()), "its machine")
    victim.write(phase="Running", conditions=[ready()])
    Scene(stage).create(
        node="small", pod=whole | {"priorityClassName": f"{stage.namespace}-high"}, podFailurePolicy=None
    )
    return taken_away(victim)


def taken_away(scene: Scene) -> Scene:
    """The cluster has marked the pod, and the kubelet has ended it."""

    def marked() -> bool:
        return any(is_true(pod, "DisruptionTarget") for pod in scene.pods())

    return scene.until(marked, "the mark of who takes it away").write(phase="Failed").says("Failed")


DISRUPTIONS = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


@scenario("drained", "failed", "Disruption")
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started().run()
    pod = scene.pods()[0]["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": scene.namespace}}
    stage.plane.send("POST", f"{scene.all_pods}/{pod}/eviction", body)
    return taken_away(scene)


@scenario("its machine is tainted", "failed", "NodeLost")
def _(stage: Stage) -> Scene:
    stage.add_node("tainted-1", kind="tainted")
    scene = Scene(stage).started(node="tainted").run()
    taint = {"spec": {"taints": [{"key": "example.org/broken", "effect": "NoExecute"}]}}
    stage.plane.send("PATCH", "/api/v1/nodes/tainted-1", taint, kind="application/merge-patch+json")
    return taken_away(scene)


@scenario("its machine is taken out of the cluster", "failed", "NodeLost")
def _(stage: Stage) -> Scene:
    """The garbage collector of pods waits 40 s, and looks every 20 s; what it writes then is written here."""
    words = "PodGC: node no longer exists"
    return Scene(stage).started().write(phase="Failed", conditions=[disrupted("DeletionByPodGC", words)]).says("Failed")


def taken(why: str, words: str = "", **status: Any) -> Player:
    return lambda stage: (
        Scene(stage).started().write(phase="Failed", conditions=[disrupted(why, words)], **status).says("Failed")
    )


LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi."
SCRATCH = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
EMPTY = 'Usage of EmptyDir volume "workspace" exceeds the limit "10Gi". '
scenario("its machine shuts down", "failed", "Disruption")(
    taken("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.", reason="Terminated")
)
scenario("its machine is short of memory", "failed", "Disruption")(
    taken("TerminationByKubelet", LOW, reason="Evicted", message=LOW)
)
scenario("it wrote more scratch space than it may", "failed", "OutOfDisk")(
    taken("TerminationByKubelet", SCRATCH, reason="Evicted", message=SCRATCH)
)
scenario("it wrote more into its workspace than it may", "failed", "OutOfDisk")(
    taken("TerminationByKubelet", EMPTY, reason="Evicted", message=EMPTY)
)
scenario("a disruption of a kind that nobody knows", "failed", "Disruption")(taken("Whim", "because"))


@scenario("it ended well while its machine shut down", "failed", "Disruption", 0)
def _(stage: Stage) -> Scene:
    conditions = [disrupted("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.")]
    return (
        Scene(stage)
        .started(workers=2)
        .run(1)
        .write(0, phase="Failed", reason="Terminated", conditions=conditions, **containers(main=terminated(0)))
        .says("FailureTarget")
        .end(1, 143, at=LAST)
        .says("Failed")
    )


@scenario("evicted by an old kubelet", "failed", "Disruption")
def _(stage: Stage) -> Scene:
    return Scene(stage).started().write(phase="Failed", reason="Evicted", message=LOW).says("Failed")


each(
    {
        f"not taken by its machine: {reason}": ("failed", "Disruption", None, reason)
        for reason in ("OutOfcpu", "OutOfnvidia.com/gpu", "UnexpectedAdmissionError", "NodeAffinity", "NodeShutdown")
    },
    lambda reason: (
        lambda stage: (
            Scene(stage)
            .started()
            .write(phase="Failed", reason=reason, message=f"Pod was rejected: {reason}")
            .says("Failed")
        )
    ),
)


@scenario("a rank is taken away, the others still end", None, "Preempted", 143)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started(workers=2).run(1)
    parts = containers(main=terminated(143))
    scene.write(0, phase="Failed", conditions=[disrupted("PreemptionByScheduler", "preempting")], **parts)
    return scene.says("FailureTarget")


def lost(**status: Any) -> Player:
    def play(stage: Stage) -> Scene:
        scene = Scene(stage).started().run()
        scene.delete_pod()
        return scene.write(**status)

    return play


scenario("R28: its machine does not answer, by the pod's condition", "failed", "NodeLost")(
    lost(conditions=[ready("False", "NodeLost")])
)
scenario("R28: its machine does not answer, by the pod's reason", "failed", "NodeLost")(
    lost(reason="NodeLost", message="Node quiet-1 which was running pod x is unresponsive")
)
scenario("R28: its phase is not known", "failed", "NodeLost")(lost(phase="Unknown"))


# Ended by us


@scenario("it is being stopped", None, "Stopped", stopped=True)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started().run()
    scene.suspend()
    return scene.until(lambda: "deletionTimestamp" in scene.pods()[0]["metadata"], "its pod is asked to end")


@scenario("it was stopped, and its exit code is known", None, "Stopped", 143, ended=True, stopped=True)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started().run()
    scene.suspend()
    scene.until(lambda: "deletionTimestamp" in scene.pods()[0]["metadata"], "its pod is asked to end")
    scene.end(0, 143)
    scene.kept_pods = scene.pods()
    return scene


@scenario("it was stopped, and its pods are gone", None, "Stopped", ended=True, stopped=True)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started().run()
    scene.suspend()
    scene.force_delete_pod()
    scene.until(lambda: not scene.pods(), "its pod is gone")
    # 1.36 takes away the time at which it had started
    return scene.until(lambda: not (scene.job() or {})["status"].get("terminating", 1), "the controller's word")


@scenario("it had failed before it was stopped", "failed", "NonZeroExit", 1)
def _(stage: Stage) -> Scene:
    return Scene(stage).faked(1).says("Failed")


# Gone


@scenario("R30: gone without a trace", "failed", "OutcomeUnknown", deleted=True)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).faked(0).says("Complete").delete()
    scene.kept_pods = []
    return scene


@scenario("deleted, and the last form of its pod says 3", "failed", "NonZeroExit", 3, deleted=True)
def _(stage: Stage) -> Scene:
    return Scene(stage).started().end(0, 3).delete()


@scenario("deleted while it ran, and nobody saw its end", "failed", "OutcomeUnknown", deleted=True)
def _(stage: Stage) -> Scene:
    return Scene(stage).started().run().delete()


@scenario("deleted, and its pod still ends", None, None, deleted=True)
def _(stage: Stage) -> Scene:
    scene = Scene(stage).started().run()
    scene.delete_pod()
    ending = scene.pods()
    scene.delete()
    scene.kept_pods = ending
    return scene


@scenario("a pod without any status", "starting", "Admitted")
def _(stage: Stage) -> Scene:
    scene = Scene(stage).create(pod={"schedulerName": "nobody"})
    scene.until(scene.pods, "its pod")
    scene.kept_pods = [pod | {"status": {}} for pod in scene.pods()]
    return scene


class _Unmanaged(Scene):
    """A Job that no controller touches, with a pod of its own: the moments between two steps of the controller."""

    def end_of_pod(self, code: int) -> Scene:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": self.uid, "controller": True}
        labels = {"batch.kubernetes.io/job-name": self.name, "batch.kubernetes.io/job-completion-index": "0"}
        spec = {"restartPolicy": "Never", "schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}
        metadata = {"name": f"{self.name}-0", "labels": labels, "ownerReferences": [owner]}
        self.plane.send("POST", self.all_pods, {"metadata": metadata, "spec": spec})
        main = containers(main=terminated(code))["containerStatuses"]
        return self.write(0, phase="Succeeded" if code == 0 else "Failed", containerStatuses=main)


def unmanaged(stage: Stage, **spec: Any) -> _Unmanaged:
    scene = _Unmanaged(stage)
    scene.create(podFailurePolicy=None, podReplacementPolicy=None, **spec)
    return scene
