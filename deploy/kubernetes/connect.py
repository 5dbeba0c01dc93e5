#!/usr/bin/env python3
"""connect.py NAME FOLDER: makes the portal's accounts on a cluster, and the files by which the portal finds it.

Asks kubectl (KUBECTL names another one) with the rights of the current context, which must be an admin's. Writes into FOLDER, for
you alone: NAME.kubeconfig, with a context for each account, and clusters.yaml, which TRAINHALL_CLUSTERS may name. Safe to repeat.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from base64 import b64decode
from pathlib import Path

HERE = Path(__file__).resolve().parent
KUBECTL = os.environ.get("KUBECTL", "kubectl")
SYSTEM = "trainhall-system"
ACCOUNTS = ("trainhall", "trainhall-watcher", "trainhall-admin-sync")
MANIFESTS = ("accounts.yaml", "priorities.yaml", "policies.yaml")
PATIENCE = 30  # seconds for the token controller


def kubectl(*words: str, body: str = "") -> str:
    done = subprocess.run([KUBECTL, *words], input=body, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def token_of(account: str) -> str:
    """A lasting token, in a Secret that Kubernetes fills; deleting the Secret ends it."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": account,
            "namespace": SYSTEM,
            "annotations": {"kubernetes.io/service-account.name": account},
        },
        "type": "kubernetes.io/service-account-token",
    }
    kubectl("apply", "--server-side", "-f", "-", body=json.dumps(secret))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        data = json.loads(kubectl("-n", SYSTEM, "get", "secret", account, "-o", "json")).get("data") or {}
        if "token" in data:
            return b64decode(data["token"]).decode()
        time.sleep(0.2)
    sys.exit(f"No token for {account} after {PATIENCE} s: is the controller manager running?")


def write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def main(name: str, folder: Path, fields: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for manifest in MANIFESTS:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(HERE / manifest))
    view = json.loads(kubectl("config", "view", "--minify", "--flatten", "-o", "json"))
    (cluster,) = view["clusters"]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": ACCOUNTS[0],
        "clusters": [cluster],
        "users": [{"name": account, "user": {"token": token_of(account)}} for account in ACCOUNTS],
        "contexts": [
            {"name": account, "context": {"cluster": cluster["name"], "user": account}} for account in ACCOUNTS
        ],
    }
    kubeconfig = (folder / f"{name}.kubeconfig").resolve()
    write(kubeconfig, json.dumps(config, indent=1))
    portal, watcher, sync = ACCOUNTS
    lines = [
        f"- name: {name}",
        f"  kubeconfig: {kubeconfig}",
        f"  context: {portal}",
        f"  watcher: {{context: {watcher}}}",
        f"  sync: {{context: {sync}}}",
        *(f"  {field}" for field in fields),
    ]
    write(folder / "clusters.yaml", "\n".join(lines) + "\n")
    print(f"TRAINHALL_CLUSTERS={(folder / 'clusters.yaml').resolve()}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
