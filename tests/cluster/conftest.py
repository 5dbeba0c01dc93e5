"""A real Kubernetes, once for all tests of a run: one that was named, one that already runs here, or one of our own.

TRAINHALL_TEST_KUBECONFIG names any cluster whose admin the tests may be. Without it the dev cluster of this checkout is used: as
it is where it runs, else it is started, and stopped again. Without root, Go or the packages it needs these tests are skipped, and
say why; TRAINHALL_CLUSTER_TESTS=required makes that a failure.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from deploy.devcluster import __main__ as program
from deploy.devcluster.api import Api
from deploy.devcluster.programs import find
from deploy.devcluster.settings import CannotStart, read
from tests.cluster.control_plane import ControlPlane, of_this_checkout
from tests.cluster.lacking import lacking

Kubectl = Callable[..., str]
OF_PLANES = ("test_watch_", "test_refused_pods")  # the files whose tests use the fixture `plane`


class OneNode(LoadScopeScheduling):
    """With two workers one has the node with real containers, whose servers tests kill; the other kills planes of its own."""

    def _split_scope(self, nodeid: str) -> str:
        return "planes" if Path(nodeid.partition("::")[0]).name.startswith(OF_PLANES) else "node"


# groups of tests (xdist_group) are written into their names, which this pytest does not let change
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneNode:
    return OneNode(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A whole run of .ci/run has an hour: what no time is left for is said, and not begun."""
    deadline = os.environ.get("TRAINHALL_CI_DEADLINE")
    if deadline and time.time() > float(deadline) and item.path.is_relative_to(Path(__file__).parent):
        pytest.skip("There is no time left in this run; make test-cluster runs it.")


@pytest.fixture(scope="session")
def devcluster() -> Iterator[Path]:
    """The kubeconfig of an admin."""
    if named := os.environ.get("TRAINHALL_TEST_KUBECONFIG"):
        yield Path(named)
        return
    settings = of_this_checkout()
    running = (settings.folder / "pki" / "done").exists() and Api(settings).ready()
    try:
        program.up(settings)  # where it runs, what it lacks: an SDK that has changed is another image
    except CannotStart as reason:
        if not running:
            program.down(settings)
        lacking(f"No real cluster: {reason}")
    with (settings.folder / "tests").open("w") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        yield settings.kubeconfig
        if not running:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("\nOther tests use the dev cluster now, so it is left running (make cluster-down).")
            else:
                program.down(settings)


@pytest.fixture(scope="session")
def kubectl(devcluster: Path) -> Kubectl:
    """What an admin types: its output, or the test fails with what it complained about."""
    built = find(read(), "kubectl")
    argv = [str(built) if built.exists() else shutil.which("kubectl") or "kubectl", "--kubeconfig", str(devcluster)]

    def run(*words: str, text: str | None = None) -> str:
        done = subprocess.run([*argv, *words], input=text, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that tests may kill, with three fake nodes."""
    plane = ControlPlane(tmp_path_factory.mktemp("plane"), fake_nodes=3)
    try:
        plane.up()
    except CannotStart as reason:
        plane.down()
        lacking(f"No control plane: {reason}")
    yield plane
    plane.down()


@pytest.fixture(scope="session")
def containers(kubectl: Kubectl) -> None:
    """For tests whose pods really run."""
    if not kubectl("get", "nodes", "-l", "type=real", "-o", "name"):
        lacking("No node here has the label type=real, which says that it has the images of the dev cluster.")


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of the test's own; Kubernetes takes it away while the next test runs."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    kubectl("create", "namespace", name)
    # pods are refused until the controllers have made it
    kubectl("-n", name, "wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
