"""The mirror heals itself, whatever becomes of the server or the way to it (RELIABILITY F07, R14, R15, R17, R18)."""

from __future__ import annotations

import itertools
import random
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.devcluster.api import Refused
from jobs.cluster.kubernetes.client import Api
from jobs.cluster.kubernetes.mirror import ClusterMirror
from jobs.cluster.kubernetes.reflector import LONGEST_PAUSE
from jobs.cluster.kubernetes.setting import Users
from jobs.cluster.observed import observe_attempt
from jobs.exceptions import ClusterUnavailable
from jobs.states import JobStatus, Reason
from tests.cluster.api_proxy import ApiProxy
from tests.cluster.control_plane import ControlPlane, within

pytestmark = pytest.mark.cluster

PODS = 300  # that may change
SEED = 7
HEALED = 60  # seconds after a fault in which the mirror is as a fresh list
KINDS = {"jobs": "/apis/batch/v1/jobs", "pods": "/api/v1/pods", "nodes": "/api/v1/nodes"}


@pytest.fixture(scope="module")
def crowd(plane: ControlPlane) -> str:
    """A namespace with enough pods for a list of two pages."""
    namespace = plane.namespace(f"crowd-{uuid.uuid4().hex[:6]}")
    for number in range(PODS):
        plane.pod(namespace, f"pod-{number}")
    return namespace


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[ApiProxy]:
    proxy = ApiProxy(plane.settings.port, plane.pki)
    yield proxy
    proxy.close()


@pytest.fixture
def mirror(proxy: ApiProxy, crowd: str, tmp_path: Path) -> Iterator[ClusterMirror]:
    mirror = ClusterMirror(Api.of(str(proxy.kubeconfig(tmp_path)), "proxied", Users()))
    within(20, lambda: all(getattr(mirror, kind).is_complete for kind in KINDS), what="the first lists")
    yield mirror
    mirror.stop()


class Churn:
    """Pods that change, go and come, all the time; errors of a server that is away are the point of it."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        self.changes = 0
        self._stop = threading.Event()
        self._random = random.Random(SEED)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Churn:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert self.changes > 20, "nothing changed during the fault"

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            name = f"pod-{self._random.randrange(PODS)}"
            try:
                if self._random.random() < 0.2:
                    self.plane.delete_pod(self.namespace, name)
                    self.plane.pod(self.namespace, name)
                else:
                    phase = self._random.choice(["Pending", "Running"])
                    self.plane.set_pod(self.namespace, name, {"phase": phase, "message": str(self.changes)})
                self.changes += 1
            except (OSError, Refused):
                continue


def differences(plane: ControlPlane, mirror: ClusterMirror) -> list[str]:
    found = []
    for kind, path in KINDS.items():
        fresh = plane.listed(path)
        ours = {uid: one["metadata"]["resourceVersion"] for uid, one in list(getattr(mirror, kind).objects.items())}
        found += [f"{kind} {uid}" for uid, _version in fresh.items() ^ ours.items()]
    return found


def is_healed(plane: ControlPlane, mirror: ClusterMirror) -> float:
    """Seconds until the mirror is as a fresh list, and says that it is of now."""
    took = within(HEALED, lambda: not differences(plane, mirror), what="the mirror is as a fresh list")
    # after many errors it may have begun its longest pause a moment ago
    within(2 * LONGEST_PAUSE + 5, lambda: age_of(mirror) < 12, what="the mirror is of now")
    print(f"healed after {took:.1f} s")
    return took


def age_of(mirror: ClusterMirror) -> float:
    try:
        return mirror.observation().age
    except ClusterUnavailable:
        return float("inf")


def test_the_api_server_is_killed_and_started_again(plane: ControlPlane, mirror: ClusterMirror, crowd: str) -> None:
    with Churn(plane, crowd):
        time.sleep(2)
        plane.kill()
        time.sleep(6)
        assert age_of(mirror) > 5
        plane.restart()
        # gone before the mirror can have listed anew, or watched again
        plane.delete_pod(crowd, "pod-1")
        time.sleep(3)
    is_healed(plane, mirror)


def test_a_black_hole_is_noticed_and_its_age_told(
    plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str
) -> None:
    with Churn(plane, crowd):
        proxy.be("silent")
        time.sleep(32)
        assert 30 < age_of(mirror) < 60  # the banner is on, and what is known is still shown
        assert all(reflector.error for reflector in (mirror.jobs, mirror.pods, mirror.nodes))
        time.sleep(32)
        with pytest.raises(ClusterUnavailable):
            mirror.observation()
    proxy.be("pass")
    is_healed(plane, mirror)


def test_half_open_watches_lose_nothing_for_longer_than_half_a_minute(
    plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str
) -> None:
    """Lists are answered and every watch falls silent with its connection open: each silence ends in a list."""
    with Churn(plane, crowd):
        proxy.be("half open")
        time.sleep(5)
    took = is_healed(plane, mirror)
    assert took < 45, "R14"
    proxy.be("pass")


@pytest.mark.parametrize("mode", ["cut mid-event", "410 as status", "410 as event", "ends at once", "strange event"])
def test_watches_that_break(plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str, mode: str) -> None:
    began = time.monotonic()
    with Churn(plane, crowd):
        proxy.be(mode)
        proxy.cut()
        time.sleep(15)
    asked = proxy.since(began)
    proxy.be("pass")
    is_healed(plane, mirror)
    assert len(asked) <= 30, f"{len(asked)} requests in 15 s"
    assert any(one.is_watch for one in asked)


@pytest.mark.parametrize("mode", ["html", "half json", "a list", "no metadata"])
def test_a_server_that_answers_garbage(
    plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str, mode: str
) -> None:
    known = len(mirror.pods.objects)
    with Churn(plane, crowd):
        proxy.be(mode)
        proxy.cut()
        time.sleep(8)
        assert len(mirror.pods.objects) >= known - 1, "what was known is kept"
        assert mirror.pods.error
    proxy.be("pass")
    is_healed(plane, mirror)


@pytest.mark.parametrize("mode", ["429", "503"])
def test_who_says_when_to_come_back_is_obeyed(
    plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str, mode: str
) -> None:
    proxy.retry_after = 6
    proxy.be(mode)
    proxy.cut()
    with Churn(plane, crowd):
        time.sleep(20)
    asked = [one for one in proxy.asked if one.mode == mode]
    proxy.be("pass")
    lists: dict[tuple[str, str], list[float]] = {}
    for one in asked:
        lists.setdefault((one.path, one.query.get("fieldSelector", "")), []).append(one.at)
    for path, times in lists.items():
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert len(times) > 1 and min(gaps) >= 6, f"{path}: {gaps}"
    is_healed(plane, mirror)


def test_a_page_that_expires_makes_the_list_begin_again(
    plane: ControlPlane, proxy: ApiProxy, crowd: str, tmp_path: Path
) -> None:
    api = Api.of(str(proxy.kubeconfig(tmp_path)), "proxied", Users())
    proxy.be("expired page")
    mirror = ClusterMirror(api, page=100)
    time.sleep(6)
    assert not mirror.pods.is_complete
    assert mirror.nodes.is_complete, "a list of one page has none that could expire"
    proxy.be("pass")
    is_healed(plane, mirror)
    mirror.stop()


def test_lost_events_are_made_good_by_the_next_list(
    plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str
) -> None:
    proxy.be("drops events")
    with Churn(plane, crowd):
        time.sleep(12)
    assert proxy.lost > 3
    is_healed(plane, mirror)
    assert proxy.mode == "drops events", "healed although events are still lost"


class TestWhatIsGone:
    """The last form of a pod tells how it ended; R19, R30."""

    def ended(self, code: int) -> dict[str, object]:
        end = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
        main = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
        phase = "Succeeded" if code == 0 else "Failed"
        return {"phase": phase, "containerStatuses": [main | {"state": {"terminated": end}}]}

    def attempt(self, plane: ControlPlane, crowd: str, name: str) -> str:
        uid = plane.job(crowd, name)
        plane.pod(crowd, name, job=(name, uid), labels={"batch.kubernetes.io/job-completion-index": "0"})
        return uid

    def seen(self, mirror: ClusterMirror, uid: str) -> tuple[JobStatus | None, Reason | None, int | None]:
        there = mirror.observation({uid})
        found = observe_attempt(there.jobs[0] if there.jobs else None, there.pods, deleted=not there.jobs)
        return found.status, found.reason, found.exit_code

    def remove(self, plane: ControlPlane, crowd: str, name: str) -> None:
        plane.delete_pod(crowd, name)
        plane.send("DELETE", f"/apis/batch/v1/namespaces/{crowd}/jobs/{name}")

    def test_a_pod_that_ends_and_goes_at_once(self, plane: ControlPlane, mirror: ClusterMirror, crowd: str) -> None:
        uid = self.attempt(plane, crowd, "quick")
        plane.set_pod(crowd, "quick", self.ended(3))
        self.remove(plane, crowd, "quick")
        within(10, lambda: uid not in mirror.jobs.objects and mirror.pod_of(uid, role="worker", index=0))
        within(10, lambda: self.seen(mirror, uid) == (JobStatus.FAILED, Reason.NON_ZERO_EXIT, 3))

    def test_one_that_ended_before_the_outage_and_went_during_it(
        self, plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str
    ) -> None:
        uid = self.attempt(plane, crowd, "before")
        plane.set_pod(crowd, "before", self.ended(5))
        within(10, lambda: self.seen(mirror, uid)[2] == 5)
        proxy.be("500")
        proxy.cut()
        self.remove(plane, crowd, "before")
        time.sleep(3)
        proxy.be("pass")
        is_healed(plane, mirror)
        assert self.seen(mirror, uid) == (JobStatus.FAILED, Reason.NON_ZERO_EXIT, 5)

    def test_nothing_that_nobody_saw_is_called_a_success(
        self, plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str
    ) -> None:
        uid = self.attempt(plane, crowd, "unseen")
        plane.set_pod(crowd, "unseen", {"phase": "Running"})
        within(10, lambda: mirror.pod_of(uid, role="worker", index=0))
        proxy.be("500")
        proxy.cut()
        plane.set_pod(crowd, "unseen", self.ended(0))
        self.remove(plane, crowd, "unseen")
        time.sleep(3)
        proxy.be("pass")
        is_healed(plane, mirror)
        assert self.seen(mirror, uid) == (JobStatus.FAILED, Reason.OUTCOME_UNKNOWN, None)

    def test_a_job_is_over_only_when_its_pods_are_heard_of(
        self, plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror, crowd: str
    ) -> None:
        """The watch of pods alone is broken: the Job's end does not make an unknown one of an exit code that is there."""
        proxy.be("500", only="/pods")
        proxy.cut()
        uid = self.attempt(plane, crowd, "ahead")
        plane.set_pod(crowd, "ahead", self.ended(75))
        plane.set_job(crowd, "ahead", FAILED)
        within(20, lambda: uid in mirror.jobs.objects and "conditions" in mirror.jobs.objects[uid]["status"])
        assert not mirror.observation({uid}).jobs
        proxy.be("pass")
        within(HEALED, lambda: self.seen(mirror, uid) == (JobStatus.FAILED, Reason.NON_ZERO_EXIT, 75))


AT = "2026-01-01T00:00:00Z"
FAILED = {
    "startTime": AT,
    "failed": 1,
    "conditions": [
        {"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": "x", "lastTransitionTime": AT}
        for kind in ("FailureTarget", "Failed")
    ],
}


class TestBudget:
    """F09: requests as the proxy counted them."""

    def test_idle(self, proxy: ApiProxy, mirror: ClusterMirror) -> None:
        time.sleep(12)
        began = time.monotonic()
        time.sleep(62)
        asked = proxy.since(began)
        others = [one for one in asked if not one.is_watch]
        print(f"idle: {len(others)} requests and {len(asked) - len(others)} watches in a minute")
        assert len(others) <= 30

    def test_in_an_outage(self, plane: ControlPlane, proxy: ApiProxy, mirror: ClusterMirror) -> None:
        proxy.be("500")
        proxy.cut()
        began = time.monotonic()
        time.sleep(62)
        asked = proxy.since(began)
        proxy.be("pass")
        print(f"outage: {len(asked)} requests in a minute")
        assert 4 <= len(asked) <= 60
        is_healed(plane, mirror)
