"""The words of training logs: what counts the steps, what is never a metric, what names a part of the data (pure)."""

from __future__ import annotations

import re
from enum import StrEnum

LONGEST_KEY = 200


class Kind(StrEnum):
    METRIC = "metric"
    STEP = "step"
    EPOCH = "epoch"
    TOTAL = "total"
    DENIED = "denied"


STEP = frozenset(
    "step _step global_step globalstep trainer_step current_step current_steps cur_step train_step training_step iteration "
    "iter cur_iter current_iteration num_updates n_iter ステップ イテレーション 步 步数 迭代 迭代次数".split()
)
EPOCH = frozenset("epoch cur_epoch current_epoch epoch_num エポック 轮 轮次 周期".split())
TOTAL = frozenset("total_steps max_steps total_iters max_iters max_iterations total_step num_steps".split())
# numbers that stand in many lines and that nobody wants as a chart
DENIED = frozenset(
    """
    eta time elapsed elapsed_time elapsed_seconds remaining remaining_time timestamp _timestamp ts t date datetime asctime now
    runtime _runtime duration memory mem max_mem max_memory gpu_mem gpu_memory memory_mb port pid ppid tid thread process
    rank local_rank global_rank node_rank world_size node nodes worker workers num_workers seed random_seed version ver
    v_num line lineno line_no level levelno host hostname localhost addr address cuda gpu gpus num_gpus gpu_id device devices
    id uid uuid job job_id run run_id attempt errno error_code exit_code returncode status status_code code http https
    batch batch_idx batch_size batch_num total n percentage percent progress shape dim size file year month day hour minute
    second jobid taskid task task_id 时间 时长 剩余时间 内存 显存 端口 版本 時間 残り時間 経過時間 メモリ
    """.split()
)
LEVELS = frozenset("trace debug info notice warning warn error critical fatal".split())
FILLERS = frozenset("the a an is was are with and at of for in on to after has got now our my its by".split())
# a word before the numbers of a line that says which part of the data they are about
PARTS = {
    **dict.fromkeys(("train", "training", "训练", "訓練", "学習"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "验证", "検証"), "val"),
    **dict.fromkeys(("eval", "evaluation", "评估", "評価"), "eval"),
    **dict.fromkeys(("test", "testing", "测试", "テスト"), "test"),
}
_BETWEEN = re.compile(r"[\s\-.]+")
_PARTS_OF_KEY = re.compile(r"[\s/_\-.]+")


def kind_of(key: str) -> Kind:
    """What a name means, by its last part: `train/step` counts steps."""
    name = _BETWEEN.sub("_", key.strip().lower().rpartition("/")[2].strip())
    if name in STEP:
        return Kind.STEP
    if name in EPOCH:
        return Kind.EPOCH
    if name in TOTAL:
        return Kind.TOTAL
    return Kind.DENIED if name in DENIED else Kind.METRIC


def of_part(key: str, part: str) -> str:
    """`loss` of a line about `val` is `val/loss`; a key that names its part itself stays."""
    if not part or _PARTS_OF_KEY.split(key.lower(), maxsplit=1)[0] in PARTS:
        return key
    return f"{part}/{key}"


def is_of_evaluation(key: str) -> bool:
    """Whether a name begins with a part of the data that nothing is trained on: `val/loss`, `eval_loss`."""
    return PARTS.get(_PARTS_OF_KEY.split(key.lower(), maxsplit=1)[0], "train") != "train"
