"""The words of a cause: templates with named places, marked for translation here and translated where they are shown (pure).

A template is used only if everything it names is known, so that no sentence ever has a hole or a guess in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_PLACES = re.compile(r"%\((\w+)\)s")

Template = str
OneOf = tuple[Template, ...]  # alternatives: the first that can be filled
Translate = Callable[[str], str]


def gettext_noop(template: Template) -> Template:
    """Marks a template for makemessages."""
    return template


def unchanged(template: Template) -> str:
    return template


class Owner(StrEnum):
    """Who can mend it."""

    YOU = "you"
    PLATFORM = "platform"
    HARDWARE = "hardware"
    UNKNOWN = "unknown"


OWNERS: dict[Owner, Template] = {
    Owner.YOU: gettext_noop("yours to fix"),
    Owner.PLATFORM: gettext_noop("the platform's"),
    Owner.HARDWARE: gettext_noop("hardware"),
    Owner.UNKNOWN: gettext_noop("whose it is, is not certain"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to fail. Each step is a template or several, of which the first that can be filled is said."""

    name: str
    owner: Owner
    title: OneOf
    steps: tuple[Template | OneOf, ...] = ()

    def sentence(self, values: Mapping[str, str], translate: Translate = unchanged) -> str:
        return next(said_of(self.title, values, translate), "")

    def next_steps(self, values: Mapping[str, str], translate: Translate = unchanged) -> list[str]:
        found = []
        for step in self.steps:
            found += list(said_of((step,) if isinstance(step, str) else step, values, translate))[:1]
        return found[:3]


def said_of(templates: Sequence[Template], values: Mapping[str, str], translate: Translate) -> Iterator[str]:
    """The templates that can be filled, filled. Values are put in as they are: what they hold is never a template."""
    for template in templates:
        if all(values.get(name) for name in _PLACES.findall(template)):
            yield translate(template) % values
