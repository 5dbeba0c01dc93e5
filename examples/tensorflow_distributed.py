"""A straight line learned by several TensorFlow processes together. Needs tensorflow.

With the launcher `tensorflow` every process finds its task and all others in TF_CONFIG. With `parameter_servers` there are a
chief, servers that hold the weights, and workers; without, workers only, which hold the weights in common.
"""

from __future__ import annotations

import json
import os

import tensorflow as tf
import trainhall

STEPS = 50
config = json.loads(os.environ["TF_CONFIG"])
task, index = config["task"]["type"], config["task"]["index"]
print(
    f"I am {task} {index}; there are { ({name: len(all_) for name, all_ in config['cluster'].items()}) }.", flush=True
)


def numbers(seed):
    """y = 3 x + 1."""
    x = tf.random.stateless_uniform((64,), (seed, 0), -1.0, 1.0)
    return x, 3 * x + 1


def told(step, loss):
    trainhall.log({"train/loss": float(loss)}, step=step)
    trainhall.progress(step + 1, STEPS)


def by_parameter_servers():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if task in ("ps", "worker"):  # waits for work for ever; the portal ends it when the chief has ended
        tf.distribute.Server(resolver.cluster_spec(), job_name=task, task_index=index, protocol="grpc").join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable([0.0, 0.0])

    @tf.function
    def step(seed):
        def on_a_worker():
            x, y = numbers(seed)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((weights[0] * x + weights[1] - y) ** 2)
            weights.assign_sub(0.3 * tape.gradient(loss, weights))
            return loss

        return strategy.run(on_a_worker)

    for number in range(STEPS):
        told(number, coordinator.schedule(step, args=(tf.constant(number),)).fetch())
    coordinator.join()
    return weights.numpy()


def by_workers():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable([0.0, 0.0])

    @tf.function
    def step(seed):
        def here():
            x, y = numbers(seed + 1000 * index)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((weights[0] * x + weights[1] - y) ** 2)
            slope = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
            weights.assign_sub(0.3 * slope)
            return loss

        return strategy.reduce("mean", strategy.run(here), axis=None)

    for number in range(STEPS):
        told(number, step(tf.constant(number)))
    return weights.numpy()


line = by_parameter_servers() if "ps" in config["cluster"] else by_workers()
print(f"y = {line[0]:.3f} x + {line[1]:.3f}", flush=True)
assert abs(line[0] - 3) < 0.1
