"""A straight line learned by several JAX processes together, each with its own part of the data. Needs jax.

With the launcher `jax` the address of the first process, how many there are and which this is are in the environment.
"""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp
import numpy as np
import trainhall
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = 100
EACH = 256  # points that a process has

jax.distributed.initialize(
    os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])
)
rank, size = jax.process_index(), jax.process_count()
print(f"I am process {rank} of {size}; together we have {jax.device_count()} devices.", flush=True)

# y = 3 x + 1, with noise that is another in every process
random = np.random.default_rng(rank)
x = random.uniform(-1, 1, EACH).astype(np.float32)
y = 3 * x + 1 + random.normal(0, 0.01, EACH).astype(np.float32)
split = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
x, y = (jax.make_array_from_process_local_data(split, part) for part in (x, y))


@jax.jit
def step(weights, x, y):
    """The mean goes over all processes: JAX sums over the network."""
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((w[0] * x + w[1] - y) ** 2))(weights)
    return weights - 0.5 * slope, loss


weights = jnp.zeros(2)
for number in range(STEPS):
    weights, loss = step(weights, x, y)
    trainhall.log({"train/loss": float(loss)}, step=number)
    trainhall.progress(number + 1, STEPS)
print(f"y = {float(weights[0]):.3f} x + {float(weights[1]):.3f}, loss {float(loss):.6f}", flush=True)
assert abs(float(weights[0]) - 3) < 0.05
