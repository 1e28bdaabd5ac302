"""Counts how much of a text bears the signs of something: a framework, a launcher, a statement of the world's size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping

import hyperscan

from phalanx.sources.scanner import Needle, NeedleSet, refused_expressions

_BLOCK = 4 << 10
_NEAR = (
    80  # a sign is looked for from here before the place where the scanner saw it, before all of the block is searched
)


class SignSet:
    """Named expressions, looked for together. A sign counts once for each block of text that shows it."""

    def __init__(self, signs: Mapping[str, re.Pattern[str]]) -> None:
        self._signs = list(signs.items())
        try:
            self._prepare(frozenset())
        except hyperscan.error:
            self._prepare(refused_expressions([pattern.pattern for pattern in signs.values()]))

    def _prepare(self, refused: Collection[str]) -> None:
        self._quick = [number for number, (_, pattern) in enumerate(self._signs) if pattern.pattern not in refused]
        self._slow = [number for number in range(len(self._signs)) if number not in self._quick]
        self._needles = NeedleSet([self._needle(number) for number in self._quick])

    def _needle(self, number: int) -> Needle:
        pattern = self._signs[number][1]
        return Needle(pattern.pattern, True, bool(pattern.flags & re.IGNORECASE), once=True)

    def count(self, sample: bytes) -> Counter[str]:
        """How many blocks of the sample show each sign."""
        counts: Counter[str] = Counter()
        for start in range(0, len(sample), _BLOCK):
            block = sample[start : start + _BLOCK]
            text = block.decode("utf-8", "replace")
            ends = {self._quick[index]: end for end, index in self._needles.scan(block)}
            for number in ends.keys() | set(self._slow):
                name, pattern = self._signs[number]
                near = max(0, ends[number] - _NEAR) if number in ends and text.isascii() else 0
                if pattern.search(text, near) or (near and pattern.search(text)):
                    counts[name] += 1
        return counts
