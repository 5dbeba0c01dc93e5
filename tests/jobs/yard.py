"""A local cluster in a folder of its own, and short ways to run something on it."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.cluster.local import journal
from jobs.cluster.local.cluster import LocalCluster
from jobs.cluster.local.layout import ObjectFolder, read_json
from jobs.cluster.manifests import Rendering, render
from jobs.cluster.observed import Observed, observe_attempt
from jobs.cluster.port import Manifest, ObjectRef, Objects, RawLine
from jobs.spec import JobSpec, Resources

NAMESPACE = "p-vision"
SETUP = """
import os, sys
for name in ("TRAINHALL_OUTPUT_DIR", "TRAINHALL_CHECKPOINT_DIR"):
    os.makedirs(os.environ[name], exist_ok=True)
if os.path.exists(os.path.join(os.environ["TRAINHALL_WORKSPACE"], "..", "..", "refuse-setup")):
    sys.exit("the archive is broken")
"""


def rendering(script: str = "true", *, job_id: str = "7f3k2p9m4x", attempt: int = 1, **changes: Any) -> Rendering:
    """Alice's job in vision, as a shell script; keywords of JobSpec and Resources change the spec, others the rendering."""
    resources = {name: changes.pop(name) for name in Resources.__dataclass_fields__ if name in changes}
    spec = {
        name: changes.pop(name) for name in ("env", "secrets", "volumes", "time_limit", "stop_grace") if name in changes
    }
    size = Resources(**({"memory_bytes": 256 * 2**20} | resources))
    job = Rendering(
        spec=JobSpec(
            namespace="vision",
            name="digits",
            runtime="numpy",
            image="ml/numpy:1",
            command=script,
            resources=size,
            **spec,
        ),
        job_id=job_id,
        attempt=attempt,
        instance="main",
        kubernetes_namespace=NAMESPACE,
        username="alice",
        internal_url="http://127.0.0.1:8000",
        token="ta_canary-token",
        argv=["/bin/sh", "-c", script],
        helper_image="trainhall:1",
    )
    return replace(job, **changes)


class Yard:
    def __init__(self, folder: Path, **options: Any) -> None:
        self.sdk = folder / "sdk"
        (self.sdk / "trainhall").mkdir(parents=True, exist_ok=True)
        (self.sdk / "trainhall" / "__init__.py").touch()
        (self.sdk / "trainhall" / "agent.py").write_text(SETUP)
        self.root = folder / "the cluster"  # a path with a space
        self.options = options
        self.cluster = self.another()
        self._ids = itertools.count(1)

    def another(self) -> LocalCluster:
        """As another process of the portal would have it."""
        settings = {"python": sys.executable, "sdk_path": str(self.sdk), "cpu_count": 4, "memory_bytes": 8 * 2**30}
        return LocalCluster("local", self.root, **(settings | self.options))

    def create(self, script: str = "true", **changes: Any) -> ObjectRef:
        return self.create_objects(render(rendering(script, **({"job_id": f"job{next(self._ids):07}"} | changes))))

    def create_objects(self, objects: Objects) -> ObjectRef:
        uid = self.cluster.create(objects, person=None)
        return ObjectRef(namespace=NAMESPACE, name=objects.leader["metadata"]["name"], uid=uid)

    def start(self, script: str = "true", **changes: Any) -> ObjectRef:
        ref = self.create(script, **changes)
        self.cluster.release(ref)
        return ref

    def run(self, script: str, **changes: Any) -> Observed:
        return self.end_of(self.start(script, **changes))

    def others(self, ref: ObjectRef) -> list[Manifest]:
        """The Jobs of the other roles of an attempt, whose leader this is."""
        owned = [job for job in self.cluster.observe().jobs if "ownerReferences" in job["metadata"]]
        return [job for job in owned if job["metadata"]["ownerReferences"][0]["uid"] == ref.uid]

    def look_at_all(self, ref: ObjectRef, *, role: str) -> Observed:
        """Of an attempt with several roles."""
        seen = self.cluster.observe()
        owned: dict[str, list[Manifest]] = {}
        for item in (*seen.jobs, *seen.pods):
            for owner in item["metadata"].get("ownerReferences", ()):
                owned.setdefault(owner["uid"], []).append(item)
        others = [item for item in owned.get(ref.uid, ()) if item["kind"] == "Job"]
        uids = (ref.uid, *(job["metadata"]["uid"] for job in others))
        pods = [item for uid in uids for item in owned.get(uid, ()) if item["kind"] == "Pod"]
        job = next((job for job in seen.jobs if job["metadata"]["uid"] == ref.uid), None)
        return observe_attempt(job, pods, others=others, role=role, deleted=job is None)

    def raw(self, ref: ObjectRef) -> tuple[Manifest | None, Sequence[Manifest]]:
        seen = self.cluster.observe()
        job = next((job for job in seen.jobs if job["metadata"]["uid"] == ref.uid), None)
        pods = [pod for pod in seen.pods if pod["metadata"]["ownerReferences"][0]["uid"] == ref.uid]
        return job, pods

    def look(self, ref: ObjectRef) -> Observed:
        job, pods = self.raw(ref)
        return observe_attempt(job, pods, deleted=job is None)

    def end_of(self, ref: ObjectRef) -> Observed:
        self.wait(lambda: self.look(ref).ended)
        return self.look(ref)

    def wait(self, condition: Callable[[], Any], *, patience: float = 20.0) -> Any:
        """Until it is true; the patience only bounds a test that fails."""
        end = time.monotonic() + patience
        while not (value := condition()):
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.02)
        return value

    def wait_for_line(self, ref: ObjectRef, text: str, worker: str = "worker-0") -> None:
        self.wait(lambda: any(text in line.text for line in self.lines(ref, worker)))

    def lines(self, ref: ObjectRef, worker: str = "worker-0", *, after: int = 0) -> list[RawLine]:
        return list(self.cluster.logs(ref, worker, after=after, limit=1_000_000))

    def text(self, ref: ObjectRef, worker: str = "worker-0") -> str:
        return "\n".join(line.text for line in self.lines(ref, worker))

    def folder(self, ref: ObjectRef) -> ObjectFolder:
        here = ObjectFolder(self.root / ref.namespace / ref.name)
        return here if here.path.exists() else ObjectFolder(self.root / ref.namespace / "deleted" / ref.name)

    def events(self, ref: ObjectRef) -> list[str]:
        return [line["event"] for line in journal.read(self.folder(ref).path)]

    def runner_of(self, ref: ObjectRef, worker: str = "worker-0") -> int:
        return int(self.wait(lambda: read_json(self.folder(ref).pod(worker).start))["pid"])

    def processes_of(self, ref: ObjectRef) -> list[int]:
        """Every process that carries the pod folders' mark, its runner not counted."""
        return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if self._is_of(pid, ref)]

    def _is_of(self, pid: int, ref: ObjectRef) -> bool:
        try:
            return (
                f"TRAINHALL_LOCAL_POD={self.root}/{ref.namespace}/{ref.name}/".encode()
                in Path(f"/proc/{pid}/environ").read_bytes()
            )
        except OSError:
            return False

    def close(self) -> None:
        for job in self.cluster.observe().jobs:
            meta = job["metadata"]
            self.cluster.kill(ObjectRef(meta["namespace"], meta["name"], meta["uid"]), person=None)
        self.wait(lambda: all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in self.cluster.observe().pods))
