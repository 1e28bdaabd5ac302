"""Finds all occurrences of needles that are otherwise looked for once in a piece, where the first was not what is meant.

A needle is a part of what a rule asks for, or a wider form of it: `File "` stands in every frame of a traceback, and only one of
them may be the line that is meant. Most first occurrences are, so the search for all others is prepared when it is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from phalanx.sources.database import Data, Occurrence
from phalanx.sources.scanner import Needle, NeedleSet


class SecondLook:
    """Compiled for the needles that were asked for so far: logs of one job ask for the same few, file after file."""

    def __init__(self, needles: Sequence[Needle]) -> None:
        self._needles = needles
        self._numbers: list[int] = []
        self._set = NeedleSet(())

    def prepare(self, numbers: Collection[int]) -> None:
        """Be ready to look for the needles of these numbers."""
        missing = sorted(set(numbers) - set(self._numbers))
        if missing:
            self._numbers += missing
            self._set = NeedleSet([replace(self._needles[number], once=False) for number in self._numbers])

    def scan(
        self, data: Data, stretches: Sequence[tuple[int, int]] | None = None, stop: int | None = None
    ) -> list[Occurrence]:
        """Every occurrence, as `NeedleSet.scan` gives them, under the numbers of the whole set."""
        return [(end, self._numbers[index]) for end, index in self._set.scan(data, stretches, stop)]
