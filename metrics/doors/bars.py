"""Progress bars: tqdm with or without a total, and Keras (pure)."""

from __future__ import annotations

import re

from metrics.doors.pairs import part_of, read_pairs
from metrics.doors.reading import Found, Reading

_PERCENT = re.compile(r"(\d{1,3})$")
_COUNTS = re.compile(r"\s{0,20}(\d{1,18})/(\d{1,18})\s{0,4}\[([^\]]*)\]?")
_OTHER_UNITS = re.compile(r"\s{0,20}[\d.]{1,18}[kMGTP]?i?B?/[\d.?]{1,18}[kMGTP]?i?B?\s{0,4}\[")
_OPEN = re.compile(r"(?:^|\s)(\d{1,18})it \[([^\]]*)\]?")
_KERAS = re.compile(r"\s{0,20}(\d{1,18})/(\d{1,18})\s{0,4}(?:\[[=>.]+\]|[━╸]+)")
_STEP_UNITS = re.compile(r"(?:(?:it|step|steps|batch|batches|b|iter|iters)/s|s/(?:it|step|batch|b|iter))$")
_CLOCK = re.compile(r"[\d:?]+(?:<[\d:? a-z]+)?")


def read_bar(text: str) -> Reading | None:
    """What a progress bar says, empty where it is of something else than training; None where the line is no bar."""
    bar = text.find("%|")
    if bar > 0 and (percent := _PERCENT.search(text, max(0, bar - 3), bar)):
        after = text.find("|", bar + 2)
        if after > 0 and (counts := _COUNTS.match(text, after + 1)):
            return _tqdm(text[: percent.start()], counts[3], text[counts.end() :], (int(counts[1]), int(counts[2])))
        return Reading() if after > 0 and _OTHER_UNITS.match(text, after + 1) else None
    if counts := _OPEN.search(text):
        reading = _tqdm(text[: counts.start()], counts[2], text[counts.end() :], None)
        if reading.step is None and not reading.is_empty:
            reading.set_step(float(int(counts[1])))
        return reading
    if counts := _KERAS.match(text):
        reading = read_pairs(text[counts.end() :], by="tqdm", offset=counts.end(), part="")
        reading.step, reading.fraction = None, (int(counts[1]), int(counts[2]))
        return reading
    return None


def _tqdm(description: str, inside: str, behind: str, counts: tuple[int, int] | None) -> Reading:
    parts = [part.strip() for part in inside.split(",")]
    clock, rate, postfix = parts[0], parts[1] if len(parts) > 1 else "", ", ".join(parts[2:])
    if not _CLOCK.fullmatch(clock) or not (rate.startswith("?") or _STEP_UNITS.search(rate)):
        return Reading()  # a download, a tokenizer
    part = part_of(description)
    found = [read_pairs(piece, by="tqdm", part=part) for piece in (description.strip().rstrip(":"), postfix, behind)]
    reading = Reading(fraction=counts if counts and counts[1] > 0 else None)
    for one in found:
        reading.metrics += [Found(each.key, each.value, each.by) for each in one.metrics]
        reading.ignored += one.ignored
        reading.epoch = one.epoch if reading.epoch is None else reading.epoch
    return reading
