"""What a line of a metric file says: the step it belongs to, and the numbers. The words are those of the stdout door."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

MOST_DEPTH = 3
MOST_NAMES = 500  # of one row
LONGEST_KEY = 200
LONGEST_NUMBER = 40  # characters
LAST_STEP = 2**53

# what counts the steps, the most telling first
STEP = (
    "step _step global_step globalstep trainer_step current_step current_steps cur_step train_step training_step "
    "total_timesteps timesteps_total num_timesteps timestep timesteps iteration iter cur_iter current_iteration "
    "training_iteration iterations num_updates n_iter steps update updates ステップ イテレーション 步 步数 迭代 迭代次数"
).split()
EPOCH = "epoch cur_epoch current_epoch epoch_num epochs エポック 轮 轮次 周期".split()
TOTAL = "total_steps max_steps total_iters max_iters max_iterations total_step num_steps".split()
TIME = "time timestamp _timestamp ts wall_time datetime date".split()
DENIED = frozenset(
    """
    eta time elapsed elapsed_time elapsed_seconds remaining remaining_time timestamp _timestamp ts t date datetime asctime now
    runtime _runtime duration memory mem max_mem max_memory gpu_mem gpu_memory memory_mb port pid ppid tid thread process
    rank local_rank global_rank node_rank world_size node nodes worker workers num_workers seed random_seed version ver
    v_num line lineno line_no level levelno host hostname localhost addr address cuda gpu gpus num_gpus gpu_id device devices
    id uid uuid job job_id run run_id attempt errno error_code exit_code returncode status status_code code http https
    batch batch_idx batch_size batch_num total n percentage percent progress shape dim size file year month day hour minute
    second jobid taskid task task_id 时间 时长 剩余时间 内存 显存 端口 版本 時間 残り時間 経過時間 メモリ wall_time data_time
    """.split()
)
PART_NAMES = (
    "mode",
    "split",
    "phase",
    "stage",
    "subset",
)  # a word beside the numbers that says which part they are about
PARTS = {
    **dict.fromkeys(("train", "training", "训练", "訓練", "学習"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "验证", "検証"), "val"),
    **dict.fromkeys(("eval", "evaluation", "评估", "評価"), "eval"),
    **dict.fromkeys(("test", "testing", "测试", "テスト"), "test"),
}
_BETWEEN = re.compile(r"[\s\-.]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_STEPS = {name: place for place, name in enumerate(STEP)}

Pairs = List[Tuple[str, float]]


class Row(NamedTuple):
    step: int
    time: Optional[float]  # where the line says one
    pairs: Pairs
    total: Optional[int]


def row_of(named: Iterable[Tuple[str, Any]]) -> Optional[Row]:
    """The row of some names and values, nested or not; None where it has no step or tells no number at it."""
    found = _Found()
    found.collect(named, "", MOST_DEPTH)
    return found.row()


def names_steps(names: Iterable[str]) -> bool:
    return any(_plain(name) in _STEPS or _plain(name) in EPOCH for name in names)


def is_metric(name: str) -> bool:
    plain = _plain(name)
    return bool(plain) and not (plain in _STEPS or plain in EPOCH or plain in TOTAL or plain in DENIED)


def number_of(value: Any) -> Optional[float]:
    """A number, or text that is one and nothing else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER and _NUMBER.fullmatch(value.strip()):
        return float(value)
    return None


class _Found:
    def __init__(self) -> None:
        self.steps: List[Tuple[int, float]] = []  # how well the name tells, and the number
        self.epoch: Optional[Tuple[str, float]] = None
        self.total: Optional[int] = None
        self.time: Optional[float] = None
        self.part = ""
        self.numbers: Dict[str, float] = {}
        self.left = MOST_NAMES

    def collect(self, named: Iterable[Tuple[str, Any]], prefix: str, depth: int) -> None:
        for name, value in named:
            self.left -= 1
            if self.left < 0:
                return
            if not isinstance(name, str) or not name.strip():
                continue
            if isinstance(value, dict):
                if depth:
                    inner = prefix if name == "metrics" else "{}{}/".format(prefix, name)
                    self.collect(value.items(), inner, depth - 1)
                continue
            self._take(prefix + name.strip(), value)

    def _take(self, key: str, value: Any) -> None:
        plain = _plain(key)
        if plain in PART_NAMES and isinstance(value, str):
            self.part = PARTS.get(value.strip().lower(), self.part)
            return
        if plain in TIME:
            self.time = self.time or moment_of(value)
        number = number_of(value)
        if number is None:
            return
        if plain in _STEPS:
            self.steps.append((_STEPS[plain] + (len(STEP) if "/" in key else 0), number))
        elif plain in EPOCH:
            self.epoch = self.epoch or (key, number)
        elif plain in TOTAL:
            self.total = int(number) if 0 < number < LAST_STEP else None
        elif plain not in DENIED and len(key) <= LONGEST_KEY and not _CONTROL.search(key):
            self.numbers[key] = number

    def row(self) -> Optional[Row]:
        number = min(self.steps)[1] if self.steps else self.epoch[1] if self.epoch else -1.0
        if not (0 <= number < LAST_STEP) or number != int(number):
            return None
        if self.steps and self.epoch:
            self.numbers.setdefault("epoch", self.epoch[1])
        pairs = [(_of_part(key, self.part), value) for key, value in self.numbers.items()]
        if not pairs and not self.total:
            return None
        return Row(int(number), self.time, pairs, self.total if self.steps else None)


def moment_of(value: Any) -> Optional[float]:
    """Seconds since 1970 where the value is a time of this century, in seconds, milliseconds, or ISO 8601."""
    number = number_of(value)
    if number is not None:
        number = number / 1000 if number > 1e11 else number
        return number if 1e9 < number < 4e9 else None
    if not isinstance(value, str) or not 19 <= len(value) <= LONGEST_NUMBER:
        return None
    try:
        when = datetime.datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    except ValueError:
        return None
    # without a zone it is what the clock of this machine showed
    return when.timestamp() if when.year > 2001 else None


def _plain(key: str) -> str:
    return _BETWEEN.sub("_", key.strip().lower().rpartition("/")[2].strip())


def _of_part(key: str, part: str) -> str:
    if not part or key == "epoch" or re.split(r"[\s/_\-.]+", key.lower(), maxsplit=1)[0] in PARTS:
        return key
    return "{}/{}".format(part, key)
