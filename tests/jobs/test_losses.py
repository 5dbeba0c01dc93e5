"""What an attempt that was taken away had saved: nothing is claimed that was not seen."""

# ruff: noqa: E501 - the sentences are compared whole

from __future__ import annotations

import pytest

from jobs.causes.words import unchanged
from jobs.losses import Loss, Outcome, loss_of, step_of


def words(loss: Loss) -> str:
    return loss.words(unchanged, lambda one, many, count: one if count == 1 else many)


@pytest.mark.parametrize(
    ("newest", "reached", "outcome", "lost", "said"),
    [
        ((102.5, "step-50.json"), 50, "saved", 0, "It saved step 50 (step-50.json) when it was told to stop. It had reached step 50: no step is lost."),
        ((102.5, "step-48.pt"), 49, "saved", 1, "It saved step 48 (step-48.pt) when it was told to stop. It had reached step 49: 1 step is lost."),
        ((80, "step-40.pt"), 49, "earlier", 9, "It saved nothing when it had to stop; its last checkpoint is of step 40 (step-40.pt). It had reached step 49: 9 steps are lost."),
        # within the second in which it was told: only what is of its last step was written afterwards
        ((100.4, "step-40.pt"), 49, "earlier", 9, "It saved nothing when it had to stop; its last checkpoint is of step 40 (step-40.pt). It had reached step 49: 9 steps are lost."),
        ((100.4, "step-49.pt"), 49, "saved", 0, "It saved step 49 (step-49.pt) when it was told to stop. It had reached step 49: no step is lost."),
        ((103, "last.pt"), 49, "saved", None, "It saved last.pt when it was told to stop. It had reached step 49; how many of them are lost the name does not tell."),
        ((80, "last.pt"), None, "earlier", None, "It saved nothing when it had to stop; its last checkpoint is last.pt. It had reported no step."),
        (None, 49, "nothing", 49, "It had saved nothing. It had reached step 49, and begins again."),
        (None, None, "nothing", None, "It had saved nothing. It had reported no step."),
    ],
)  # fmt: skip
def test_what_is_lost_in_words(
    newest: tuple[float, str] | None, reached: int | None, outcome: str, lost: int | None, said: str
) -> None:
    loss = loss_of(newest, told_at=100, reached=reached)
    assert (loss.outcome, loss.lost) == (outcome, lost)
    assert words(loss) == said


def test_who_was_told_nothing_saved_nothing_then() -> None:
    assert loss_of((100, "step-9.pt"), told_at=None, reached=9).outcome == Outcome.EARLIER


def test_files_that_cannot_be_seen_are_no_loss() -> None:
    loss = Loss(Outcome.UNKNOWN, reached=9)
    assert loss.lost is None
    assert words(loss) == "Whether it saved is not known: the portal cannot see its files."


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-50.json", 50),
        ("checkpoint-1000", 1000),
        ("ckpt_7.pt", 7),
        ("model-step=00012.ckpt", 12),
        ("900", 900),
        ("900.pt", 900),
        ("epoch-3.pt", None),
        ("resnet50.pt", None),
        ("last.pt", None),
        ("step-1767225600.pt", None),
    ],
)
def test_only_a_number_of_steps_is_one(name: str, step: int | None) -> None:
    assert step_of(name, 1000) == step
