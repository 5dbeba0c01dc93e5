"""Rules of a runtime: named groups are metrics, wrong ones are named, and none can hang."""

from __future__ import annotations

from metrics.doors.rules import compile_rules, rules_of
from metrics.doors.stdout import read_line

TOP = {"pattern": r"top1 (?P<top1>[0-9.]+)% at (?P<step>\d+)", "group": "val"}


def test_named_groups_are_metrics_and_the_step() -> None:
    rules, errors = compile_rules([TOP])
    reading = read_line("checkpoint: top1 91.5% at 300", rules)
    assert [(one.key, one.value, one.by) for one in reading.metrics] == [("val/top1", 91.5, "rule 1")]
    assert (reading.step, reading.says_so, errors) == (300, True, [])


def test_a_rule_wins_over_what_is_read_by_itself() -> None:
    rules, _errors = compile_rules(
        [{"pattern": r"loss=(?:[0-9.]+)/(?P<loss>[0-9.]+)"}, {"pattern": r"acc=(?P<acc>\S+)"}]
    )
    reading = read_line("loss=9/0.5 acc=0.51s lr=0.1 step=4", rules)
    assert {one.key: (one.value, one.by) for one in reading.metrics} == {
        "loss": (0.5, "rule 1"),
        "acc": (0.51, "rule 2"),
        "lr": (0.1, "pairs"),
    }
    assert reading.step == 4


def test_a_metric_may_be_named_by_what_is_found() -> None:
    rules, _errors = compile_rules([{"pattern": r"<(?P<key>\w+) is (?P<value>[0-9.]+)>"}])
    found = read_line("<loss is 0.5> <acc is 0.9>", rules).metrics
    assert [(one.key, one.value) for one in found] == [("loss", 0.5), ("acc", 0.9)]


def test_what_is_wrong_with_a_rule_is_said() -> None:
    rules, errors = compile_rules(
        [TOP, {"pattern": "("}, {"pattern": r"(?P<step>\d+)"}, 7, {"pattern": r"(?P<a>.)(?=b)"}]
    )
    assert len(rules) == 1
    assert [error["rule"] for error in errors] == [2, 3, 4, 5]
    assert {error["code"] for error in errors} <= {"no_rule", "bad_pattern", "no_metric"}
    assert all(error["said"] for error in errors if error["code"] == "bad_pattern")


def test_a_pattern_that_hangs_others_does_not_hang_here() -> None:
    rules, _errors = compile_rules([{"pattern": r"(?:(?:a+)+)+(?P<x>\d)$"}])
    assert read_line("a" * 4000 + "=", rules).metrics == []


def test_rules_come_from_the_snapshot_of_the_runtime() -> None:
    assert len(rules_of({"metric_rules": [TOP]})) == 1
    assert list(rules_of({})) == []
    assert len(rules_of({"metric_rules": [{"pattern": "("}, "x", TOP]})) == 1
