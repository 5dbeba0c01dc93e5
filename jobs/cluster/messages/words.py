"""What a text of Kubernetes comes to: a reason, a sentence, and whether we knew it at all. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobs.states import Reason

LONGEST = 600  # characters of a text that nobody translated yet
_POD_NAMES = re.compile(r'\bpods "[^"]*"')


@dataclass(frozen=True, slots=True)
class Told:
    """`is_known` says that a sentence of ours tells it; what is not known is shown as it is, and counted."""

    reason: Reason
    text: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: re.Pattern[str]
    reason: Reason
    say: Callable[[re.Match[str]], str]


def rule(pattern: str, reason: Reason, sentence: str | Callable[[re.Match[str]], str]) -> Rule:
    """Of a sentence {1}, {2} … are the groups of the pattern."""

    def say(match: re.Match[str]) -> str:
        return sentence.format(match[0], *match.groups(default="")) if isinstance(sentence, str) else sentence(match)

    return Rule(re.compile(pattern, re.DOTALL), reason, say)


def first(rules: Sequence[Rule], message: str) -> Told | None:
    for one in rules:
        if match := one.pattern.search(message):
            return Told(one.reason, one.say(match))
    return None


def as_it_is(reason: Reason, before: str, message: str) -> Told:
    """The cluster's own words, where we have none."""
    words = " ".join(message.split())
    if not words:
        return Told(reason, before)
    shown = words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
    return Told(reason, f"{before} Technical reason: {shown}", is_known=False)


def without_names(message: str) -> str:
    """The same text for every pod: each that is refused has a name of its own."""
    return _POD_NAMES.sub("pods", message)


def sentence(words: str) -> str:
    """Somebody else's words as a sentence."""
    shortened = " ".join(words.split())[:LONGEST].rstrip(". ")
    is_word = shortened.partition(" ")[0].islower()  # runAsUser is a name, and stays one
    return f"{shortened[:1].upper() if is_word else shortened[:1]}{shortened[1:]}." if shortened else ""
