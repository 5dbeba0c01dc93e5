"""What each launcher's programs read to find each other: rank, size and address, without anybody writing them. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable

from jobs.cluster.rendering import (
    JAX_PORT,
    MASTER_PORT,
    SSH_FOLDER,
    SSH_PORT,
    TENSORFLOW_PORT,
    XGBOOST_PORT,
    Rendering,
)
from jobs.gang import WORKER, PodGroup

INDEX = "$(JOB_COMPLETION_INDEX)"
MPI_HOSTS = "TRAINHALL_MPI_HOSTS"

# beside the port that every container has
PORTS = {
    "jax": ("coordinator", JAX_PORT),
    "tensorflow": ("tensorflow", TENSORFLOW_PORT),
    "mpi": ("ssh", SSH_PORT),
    "xgboost": ("tracker", XGBOOST_PORT),
}


def environment(job: Rendering, group: PodGroup) -> dict[str, str]:
    try:
        words = LAUNCHERS[job.launcher]
    except KeyError:
        raise ValueError(f"No manifest is known for the launcher {job.launcher!r}.") from None
    return words(job, group)


def _plain(job: Rendering, _group: PodGroup) -> dict[str, str]:
    """One process per pod."""
    return {**_rank(job), **_master(job)}


def _torchrun(job: Rendering, group: PodGroup) -> dict[str, str]:
    """torchrun takes every option from PET_*; RANK and WORLD_SIZE serve scripts started without it."""
    per_node = group.gpus or 1
    return {
        **_master(job),
        "PET_NNODES": str(group.count),
        "PET_NPROC_PER_NODE": str(per_node),
        "PET_NODE_RANK": INDEX,
        "PET_MASTER_ADDR": "$(MASTER_ADDR)",
        "PET_MASTER_PORT": "$(MASTER_PORT)",
        "PET_RDZV_ID": f"{job.job_id}-{job.attempt}",
        "RANK": INDEX,
        "WORLD_SIZE": str(group.count * per_node),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    }


def _jax(job: Rendering, _group: PodGroup) -> dict[str, str]:
    """jax.distributed.initialize() reads the address by itself; the program hands it the two numbers."""
    return {
        **_rank(job),
        "JAX_COORDINATOR_ADDRESS": f"{job.address(WORKER, 0)}:{JAX_PORT}",
        "JAX_NUM_PROCESSES": "$(WORLD_SIZE)",
        "JAX_PROCESS_ID": INDEX,
    }


def _tensorflow(job: Rendering, group: PodGroup) -> dict[str, str]:
    """TF_CONFIG, the same cluster for every task. With parameter servers there is a chief, else the first worker is it."""
    cluster = {
        one.role: [f"{job.address(one.role, index)}:{TENSORFLOW_PORT}" for index in range(one.count)]
        for one in job.groups
    }
    task = f'{{"type": "{group.role}", "index": {INDEX}}}'
    config = f'{{"cluster": {json.dumps(cluster)}, "task": {task}, "environment": "cloud"}}'
    return {"TF_CONFIG": config} if len(job.groups) > 1 else {**_rank(job), "TF_CONFIG": config}


def _xgboost(job: Rendering, _group: PodGroup) -> dict[str, str]:
    """The names that xgboost.collective has for its arguments; rank 0 starts the tracker that they tell of."""
    return {
        **_rank(job),
        "DMLC_TRACKER_URI": job.address(WORKER, 0),
        "DMLC_TRACKER_PORT": str(XGBOOST_PORT),
        "DMLC_NUM_WORKER": "$(WORLD_SIZE)",
        "DMLC_TASK_ID": INDEX,
    }


def _mpi(job: Rendering, group: PodGroup) -> dict[str, str]:
    """Each MPI has a name of its own for a file of hosts; `mpi` has the programs that write it, and the `ssh` that knows them.

    No RANK here: the ranks get theirs from MPI.
    """
    slots = str(job.spec.resources.gpus or 1)
    both = {
        "TRAINHALL_MPI_DIR": "/tmp/.trainhall-mpi",  # noqa: S108 - in a volume of the pod's own
        "TRAINHALL_SSH_KEYS": SSH_FOLDER,
        MPI_HOSTS: mpi_hosts(job),
        "TRAINHALL_MPI_SLOTS": slots,
        **_master(job),
        # who may start processes in a container, and as whom, is decided before Open MPI is asked
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    if group.role == WORKER:
        return {**both, "TRAINHALL_SSH_ADDRESS": f"{job.address(WORKER, INDEX)}:{SSH_PORT}"}
    hosts = "$(TRAINHALL_MPI_DIR)/hostfile"
    return {
        **both,
        "OMPI_MCA_orte_default_hostfile": hosts,  # Open MPI 4
        "PRTE_MCA_prte_default_hostfile": hosts,  # Open MPI 5
        "I_MPI_HYDRA_HOST_FILE": f"{hosts}.hydra",  # Intel MPI
        "I_MPI_PERHOST": slots,
        "HYDRA_HOST_FILE": f"{hosts}.hydra",  # MPICH
    }


def mpi_hosts(job: Rendering) -> str:
    """Host name and address of every worker: `name=address:port`, with a space between two."""
    workers = range(job.spec.resources.workers)
    return " ".join(f"{job.pod_host(WORKER, index)}={job.address(WORKER, index)}:{SSH_PORT}" for index in workers)


def _rank(job: Rendering) -> dict[str, str]:
    return {"RANK": INDEX, "WORLD_SIZE": str(job.spec.resources.workers)}


def _master(job: Rendering) -> dict[str, str]:
    return {"MASTER_ADDR": job.address(WORKER, 0), "MASTER_PORT": str(MASTER_PORT)}


LAUNCHERS: dict[str, Callable[[Rendering, PodGroup], dict[str, str]]] = {
    "plain": _plain,
    "torchrun": _torchrun,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "mpi": _mpi,
    "xgboost": _xgboost,
}
