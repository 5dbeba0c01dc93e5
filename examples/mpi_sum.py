"""Pi by the darts of several MPI processes: mpirun python mpi_sum.py. Needs mpi4py and an MPI; its workers need OpenSSH's sshd.

With the launcher `mpi` mpirun knows the hosts by itself and starts one process for each GPU of each worker, or one a worker.
"""

from __future__ import annotations

import random
import socket

import trainhall
from mpi4py import MPI

ROUNDS, DARTS = 20, 20_000
world = MPI.COMM_WORLD
print(f"I am rank {world.rank} of {world.size} on {socket.gethostname()}.", flush=True)
noise = random.Random(world.rank)
hits = 0
for number in range(ROUNDS):
    hits += sum(noise.random() ** 2 + noise.random() ** 2 < 1 for _dart in range(DARTS))
    pi = 4 * world.allreduce(hits) / (world.size * DARTS * (number + 1))
    if world.rank == 0:
        trainhall.log({"pi": pi}, step=number)
        trainhall.progress(number + 1, ROUNDS)
if world.rank == 0:
    print(f"pi is about {pi:.4f}, say {world.size} processes", flush=True)
