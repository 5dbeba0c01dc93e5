"""Ports of this machine for the pods of an attempt, which on a cluster have each an address of its own."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from jobs.cluster.local.facts import ObjectFacts

Ports = dict[str, dict[str, int]]  # by host name, then by the port that the manifest names


def assign(facts: ObjectFacts) -> Ports:
    """A free one for each port of each pod; another program may take it first, as on any shared machine."""
    with ExitStack() as held:  # all at the same time, so that they differ
        return {
            f"{job.job['metadata']['name']}-{pod.record['index']}": {
                str(entry["containerPort"]): _free(held)
                for entry in job.job["spec"]["template"]["spec"]["containers"][0].get("ports", ())
            }
            for job in facts.jobs
            for pod in job.pods
        }


def _free(held: ExitStack) -> int:
    probe = held.enter_context(socket.socket())
    probe.bind(("127.0.0.1", 0))
    return int(probe.getsockname()[1])
