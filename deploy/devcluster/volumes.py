"""Volumes on this machine's disk for claims of the class `devcluster`, and the class itself: the smallest provisioner.

`up` starts it. A volume lies in <folder>/volumes/<namespace>/<claim>, is kept
when its claim goes, and anybody may make folders of their own in it, as on a shared NFS export.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from deploy.devcluster import servers
from deploy.devcluster.api import Api, Refused
from deploy.devcluster.settings import CHECKOUT, Settings, read

CLASS = "devcluster"
PROVISIONER = "trainhall.io/devcluster"
PAUSE = 0.3  # seconds between two looks


def start(settings: Settings, api: Api) -> None:
    make_class(api)
    itself = {"PYTHONPATH": str(CHECKOUT), "CLUSTER_DIR": str(settings.folder), "CLUSTER_PORT": str(settings.port)}
    argv = [sys.executable, "-m", "deploy.devcluster.volumes"]
    servers.start(settings, "volumes", argv, read=[Path(__file__)], environment=itself)


def serve(settings: Settings) -> None:
    api = Api(settings)
    while True:
        try:
            look(settings, api)
        except (OSError, Refused) as error:  # the API server is restarted by those who test that
            print(error, file=sys.stderr, flush=True)
            time.sleep(1)
        time.sleep(PAUSE)


def make_class(api: Api) -> None:
    api.create(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": CLASS},
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Retain",
            "volumeBindingMode": "Immediate",
        },
    )


def look(settings: Settings, api: Api) -> None:
    """Make a volume for each claim that waits for one."""
    for claim in api.send("GET", "/api/v1/persistentvolumeclaims")["items"]:
        spec = claim["spec"]
        if (
            claim["status"].get("phase") == "Pending"
            and spec.get("storageClassName") == CLASS
            and "volumeName" not in spec
        ):
            metadata = claim["metadata"]
            folder = settings.folder / "volumes" / metadata["namespace"] / metadata["name"]
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o1777)
            api.create("/api/v1/persistentvolumes", _volume(claim, folder))


def _volume(claim: dict[str, Any], folder: Path) -> dict[str, Any]:
    metadata, spec = claim["metadata"], claim["spec"]
    owner = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
        },
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": CLASS,
            "claimRef": owner,
            "hostPath": {"path": str(folder), "type": "Directory"},
        },
    }


if __name__ == "__main__":
    settings = read()
    make_class(Api(settings))
    serve(settings)
