"""Boosted trees grown by several processes together, each with its own part of the data. Needs xgboost and numpy.

With the launcher `xgboost` the tracker's address, how many processes there are and which this is are in the environment; the
first process runs the tracker.
"""

from __future__ import annotations

import os
import socket

import numpy as np
import trainhall
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

ROUNDS = 20
rank, size = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
host, port = os.environ["DMLC_TRACKER_URI"], int(os.environ["DMLC_TRACKER_PORT"])

tracker = None
if rank == 0:
    tracker = RabitTracker(size, socket.gethostbyname(host), port, sortby="task")
    tracker.start()


class Report(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        trainhall.log({"train/error": evals_log["train"]["error"][-1]}, step=epoch)
        trainhall.progress(epoch + 1, ROUNDS)
        return False


arguments = {"dmlc_tracker_uri": host, "dmlc_tracker_port": port, "dmlc_task_id": str(rank), "dmlc_retry": 60}
with collective.CommunicatorContext(**arguments):
    print(f"I am process {collective.get_rank()} of {collective.get_world_size()}.", flush=True)
    # points inside and outside of a circle; each process has others
    points = np.random.default_rng(rank).uniform(-1, 1, (500, 2))
    data = xgboost.DMatrix(points, label=(points**2).sum(axis=1) < 0.5)
    told: dict = {}
    model = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "eval_metric": "error", "nthread": 1},
        data,
        num_boost_round=ROUNDS,
        evals=[(data, "train")],
        evals_result=told,
        verbose_eval=False,
        callbacks=[Report()],
    )
    same = collective.broadcast(bytes(model.save_raw()).hex(), 0) == bytes(model.save_raw()).hex()
    print(f"error {told['train']['error'][-1]:.4f}; the same trees as process 0: {same}", flush=True)
    assert same
if tracker:
    tracker.wait_for()
