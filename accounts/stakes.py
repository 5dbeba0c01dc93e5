"""What somebody has running and waiting where they lose a role. The app above counts it, by `TRAINHALL_STAKES` (DESIGN 11.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import ngettext


@dataclass(frozen=True, slots=True)
class Stake:
    running: int = 0
    waiting: int = 0

    @property
    def words(self) -> str:
        """How many, as in: 2 running, 1 waiting."""
        return self._listed(
            ngettext("%(count)s running", "%(count)s running", self.running),
            ngettext("%(count)s waiting", "%(count)s waiting", self.waiting),
        )

    @property
    def consequences(self) -> str:
        """What becomes of them where the right to run them goes."""
        return self._listed(
            ngettext("%(count)s running job goes on", "%(count)s running jobs go on", self.running),
            ngettext(
                "%(count)s waiting job is held for a lead", "%(count)s waiting jobs are held for a lead", self.waiting
            ),
        )

    def _listed(self, runs: str, waits: str) -> str:
        return ", ".join(
            words % {"count": count} for words, count in ((runs, self.running), (waits, self.waiting)) if count
        )


NOTHING = Stake()


def of_people(pks: Iterable[int]) -> dict[tuple[int, str], Stake]:
    """By person and the namespace's slug, one query; who has nothing there is left out."""
    wanted = sorted(set(pks))
    counted = import_string(settings.TRAINHALL_STAKES)(wanted) if wanted else {}
    return {place: Stake(*counts) for place, counts in counted.items()}


def by_person(found: Mapping[tuple[int, str], Stake]) -> dict[int, Stake]:
    whole: dict[int, Stake] = {}
    for (pk, _slug), stake in found.items():
        had = whole.get(pk, NOTHING)
        whole[pk] = Stake(had.running + stake.running, had.waiting + stake.waiting)
    return whole
