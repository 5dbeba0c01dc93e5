"""The watcher with 5,000 pods of 1,000 jobs while 100 pods a second change: its memory, and how late the database is.

The bars: under 400 MB at its peak; from the API server's answer to the committed row p95 under 1 s. The pods' container is not
ours by name, so no logs are followed here: bench_logs.py measures those. A watch that does nothing but note the time says beside
it how late the API server was itself; it, etcd and this benchmark share the machine with the watcher, and its load is told.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from bare_watch import bare_watch, lateness
from place import ROOT, Table, p95

from deploy.devcluster.settings import CannotStart
from tests import servers
from tests.cluster.control_plane import ControlPlane

JOBS, WORKERS = int(os.environ.get("BENCH_WATCH_JOBS", "1000")), 5
NODES = JOBS * WORKERS // 100 + 1
CHANGES = 100  # a second
SECONDS = float(os.environ.get("BENCH_WATCH_SECONDS", "60"))
MEMORY, LATE = 400.0, 1000.0
CLUSTER = "bench"
TOLERATION = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}


class Sender:
    """One connection that stays open for each thread: a handshake for each of 10,000 requests would be the benchmark."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.context = plane, plane.tls()
        self._own = threading.local()

    def __call__(self, method: str, path: str, body: Any, *, kind: str = "application/json") -> Any:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            port = self.plane.settings.port
            connection = self._own.connection = http.client.HTTPSConnection("127.0.0.1", port, context=self.context)
        connection.request(method, path, json.dumps(body), {"Content-Type": kind, "Accept": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return json.loads(content)


def pod(name: str, job: dict[str, Any], index: int, node: str) -> dict[str, Any]:
    """As ours are: with the environment, mounts and labels that a real one has, for its size."""
    metadata = job["metadata"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    environment = [{"name": f"TRAINHALL_SETTING_{number}", "value": f"value-{number}" * 4} for number in range(20)]
    container = {
        "name": "trainer",
        "image": "localhost/busybox:1",
        "command": ["sh", "-c", "exec python train.py --epochs 90 --batch-size 256"],
        "env": environment,
        "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}},
    }
    labels = {
        "batch.kubernetes.io/job-completion-index": str(index),
        "trainhall.io/role": "worker",
        "trainhall.io/job": metadata["name"],
        "app.kubernetes.io/managed-by": "trainhall",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "restartPolicy": "Never",
            "nodeName": node,
            "tolerations": [TOLERATION],
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


def fill_cluster(plane: ControlPlane, send: Sender) -> list[dict[str, Any]]:
    namespace = plane.namespace("u-alice")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "trainer", "image": "x"}]}}

    def one(number: int) -> dict[str, Any]:
        spec = {"managedBy": "trainhall.io/bench", "parallelism": WORKERS, "completions": WORKERS}
        spec |= {"completionMode": "Indexed", "backoffLimit": 0, "template": template}
        name = f"j-{number:010d}-1"
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        job: dict[str, Any] = send("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body)
        for index in range(WORKERS):
            node = f"gpu-{(number * WORKERS + index) % NODES}"
            send("POST", f"/api/v1/namespaces/{namespace}/pods", pod(f"{name}-{index}", job, index, node))
        return job

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(JOBS)))


def fill_database(jobs: Sequence[dict[str, Any]]) -> None:
    from django.db import connection
    from django.utils import timezone

    from accounts.models import Namespace, User
    from jobs.models import Attempt, Cluster, Job, JobFeed, Worker
    from tests.factories import make_job

    now = timezone.now()
    Cluster.objects.get_or_create(name=CLUSTER, kind="kubernetes")
    pattern = make_job(User.objects.get(username="alice"), Namespace.objects.get(slug="vision"), name="pattern")
    fields: dict[str, Any] = {f.attname: getattr(pattern, f.attname) for f in Job._meta.concrete_fields}
    del fields["id"]
    fields |= {"cluster_id": CLUSTER, "status": "running", "attempt_number": 1, "started_at": now, "workers": WORKERS}
    pattern.delete()
    rows = [Job(**fields | {"name": f"bench {number}"}) for number in range(len(jobs))]
    Job.objects.bulk_create(rows, batch_size=500)
    JobFeed.objects.bulk_create([JobFeed(job=row) for row in rows], batch_size=500)
    attempts = [
        Attempt(
            job=row,
            number=1,
            cluster_id=CLUSTER,
            kubernetes_namespace="u-alice",
            object_name=job["metadata"]["name"],
            uid=job["metadata"]["uid"],
            released_at=now,
        )
        for row, job in zip(rows, jobs, strict=True)
    ]
    Attempt.objects.bulk_create(attempts, batch_size=500)
    Worker.objects.bulk_create(
        [Worker(attempt=attempt, role="worker", index=index) for attempt in attempts for index in range(WORKERS)],
        batch_size=1000,
    )
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_seen (at double precision, pod text, message text)")
        cursor.execute(
            "CREATE FUNCTION bench_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " INSERT INTO bench_seen VALUES (extract(epoch FROM clock_timestamp()), NEW.pod_name, NEW.message);"
            " RETURN NEW; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER bench_note AFTER UPDATE OF message ON jobs_worker FOR EACH ROW"
            " WHEN (OLD.message IS DISTINCT FROM NEW.message) EXECUTE FUNCTION bench_note()"
        )


@contextmanager
def database() -> Iterator[None]:
    """PostgreSQL and Valkey alone: nobody looks at pages here."""
    servers.pytest_load_initial_conftests()
    try:
        address = os.environ["DATABASE_URL"].replace("/trainhall?", "/postgres?")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE DATABASE trainhall")
        os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings.dev"
        import django

        django.setup()
        from django.core.management import call_command

        from portal import seed

        call_command("migrate", verbosity=0)
        seed.ensure_project("vision")
        yield
    finally:
        servers.pytest_unconfigure()


def watcher(plane: ControlPlane, folder: Path) -> subprocess.Popen[bytes]:
    clusters = folder / "clusters.yaml"
    clusters.write_text(f"- name: {CLUSTER}\n  kubeconfig: {plane.settings.kubeconfig}\n")
    with (folder / "watcher.log").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "manage.py", "watch_cluster"],
            cwd=ROOT,
            env=os.environ | {"TRAINHALL_CLUSTERS": str(clusters)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def change(send: Sender, jobs: Sequence[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """When the server had said yes to each change."""
    told: dict[tuple[str, str], float] = {}
    order = random.Random(11)

    def one(number: int) -> None:
        name = f"{order.choice(jobs)['metadata']['name']}-{order.randrange(WORKERS)}"
        body = {"status": {"message": f"change {number}"}}
        send("PATCH", f"/api/v1/namespaces/u-alice/pods/{name}/status", body, kind="application/merge-patch+json")
        told[name, f"change {number}"] = time.time()

    began = time.monotonic()
    with ThreadPoolExecutor(6) as pool:
        number = 0
        while (passed := time.monotonic() - began) < SECONDS:
            while number < passed * CHANGES:
                pool.submit(one, number)
                number += 1
            time.sleep(0.01)
    print(f"  {len(told) / (time.monotonic() - began):.0f} changes a second were made", flush=True)
    return told


def until(question: Callable[[], Any], seconds: float) -> float:
    began = time.monotonic()
    while not question():
        if time.monotonic() - began > seconds:
            raise TimeoutError
        time.sleep(0.2)
    return time.monotonic() - began


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="bench-watch-"))
    plane = ControlPlane(folder / "plane", fake_nodes=NODES)
    try:
        plane.up()
    except CannotStart as reason:
        print(f"No control plane: {reason}")
        plane.down()
        return 1
    try:
        send = Sender(plane)
        jobs = fill_cluster(plane, send)
        with database():
            fill_database(jobs)
            running = watcher(plane, folder)
            try:
                return measure(plane, send, jobs, psutil.Process(running.pid), folder)
            finally:
                running.terminate()
                running.wait(120)
                print((folder / "watcher.log").read_text()[-1500:])
    finally:
        plane.down()
        shutil.rmtree(folder)


def measure(
    plane: ControlPlane, send: Sender, jobs: Sequence[dict[str, Any]], process: psutil.Process, folder: Path
) -> int:
    from django.db import connection

    from jobs.models import Worker

    took = until(lambda: not Worker.objects.filter(attempt__cluster_id=CLUSTER).exclude(phase="Running").exists(), 240)
    print(f"  {JOBS * WORKERS:,} pods of {JOBS:,} jobs are in the database after {took:.0f} s", flush=True)
    time.sleep(70)  # a whole round of lists
    with bare_watch(plane.settings.port, plane.pki, folder / "bare-watch.tsv") as noted:
        began, before, others = time.monotonic(), process.cpu_times(), os.getloadavg()[0]
        told = change(send, jobs)
        after, took = process.cpu_times(), time.monotonic() - began
        print(f"  load {others:.1f} before and {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores")
        time.sleep(3)
    server = lateness(noted, told)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pod, message, at FROM bench_seen")
        seen = {(pod, message): at for pod, message, at in cursor.fetchall()}
    late = [(seen[key] - at) * 1000 for key, at in told.items() if key in seen]
    # a pod that changed again before it was read has no row of its own
    print(f"  {len(late)} of {len(told)} changes have a row; {(sum(after[:2]) - sum(before[:2])) / took:.0%} of a CPU")
    table = Table("Watcher")
    table.line("memory at its peak", peak_of(process) / 2**20, MEMORY, unit="MB")
    bare = f"its bare watch {sorted(server)[len(server) // 2]:.0f} and {p95(server):.0f} ms"
    table.line("API server -> database, p50", sorted(late)[len(late) // 2], LATE)
    table.line("API server -> database, p95", p95(late), LATE, beside=bare)
    if len(late) < 0.9 * len(told):
        print("  MISSED: too few changes arrived")
        return 1
    return 1 if table.missed else 0


def peak_of(process: psutil.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
