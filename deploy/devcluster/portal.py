"""The dev cluster as the portal finds it: accounts, policies, and the file for TRAINHALL_CLUSTERS."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from deploy.devcluster import images, volumes
from deploy.devcluster.programs import find
from deploy.devcluster.settings import CHECKOUT, CannotStart, Settings

NAME = "dev"


def connect(settings: Settings, *, port: int = 8000) -> Path:
    """Make or renew what deploy/kubernetes/connect.py makes; the path of the list of clusters."""
    folder = settings.folder / "portal"
    fields = [
        f"runs_class: {volumes.CLASS}",
        f"runs: {settings.folder}/volumes/{{namespace}}/runs",
        f"internal_url: http://{settings.node_address}:{port}",
        f"helper_image: {images.helper().name}",
    ]
    argv = [sys.executable, str(CHECKOUT / "deploy" / "kubernetes" / "connect.py"), NAME, str(folder), *fields]
    environment = {
        **os.environ,
        "KUBECTL": str(find(settings, "kubectl")),
        "KUBECONFIG": str(settings.kubeconfig),
    }
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotStart(f"The portal's accounts could not be made: {done.stderr.strip()}")
    return folder / "clusters.yaml"
