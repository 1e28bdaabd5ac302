"""What people set between fences in a report: told from their own words, and read where they point at it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from phalanx.model.lazy import lazy

FENCE = lazy(r"^\s*(?:```|~~~)")
LONE_TICK = lazy(r"^\s*`\s*$", re.MULTILINE)
_ANY_FENCE = lazy(r"```|~~~")
_NAME = lazy(r"[A-Za-z_]\w+")
# "It gets stuck in this line", "the code is hanging on:" and then a fence.
_POINTS = lazy(
    r"(?=.*(?:\bhang(?:s|ing)?\b|\bhung\b|\bstucks?\b|\bfreez\w+|\bblock(?:s|ed)?\b|\bstops? (?:at|in|on|here)\b|卡))"
    r".*(?:[:：]\s*$|\b(?:th(?:is|ese)|following|below|here)\b)",
    re.I,
)
# "The error comes from this line", "error code is here:".
_POINTS_AT_ERROR = lazy(
    r".*\b(?:errors?|fail(?:s|ed|ing)?|crash(?:es|ed)?|raised)\b.{0,60}\b(?:(?:th(?:is|ese)|following|the) (?:line|lines|call|function|statement|code)\b|code is (?:here|below))",
    re.I,
)
_FEW_LINES = 3  # a call; more is a log, whose end tells where it stood
_MOST_NAMES = 12  # of a line


def outside_and_inside(lines: Iterable[str], *, by_ticks: bool) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code or a program's output; the fences themselves are left out.

    Code that is fenced within a line belongs to the sentence, and so do words behind the end of a fence.
    """
    in_fence = False
    for line in lines:
        if by_ticks and LONE_TICK.match(line):
            in_fence = not in_fence
            continue
        marks = len(_ANY_FENCE.findall(line)) if "```" in line or "~~~" in line else 0
        if not marks:
            yield line, in_fence
        elif in_fence:
            in_fence = marks % 2 == 0
            rest = line.replace("~~~", "```").rpartition("```")[2]
            if not in_fence and rest.strip():
                yield rest, False
        elif marks % 2 == 0:
            yield _ANY_FENCE.sub(" ", line), False
        elif FENCE.match(line):
            in_fence = True
        else:
            yield line, False


def points_below(line: str) -> bool:
    """Whether a sentence says that something stands still, or fails, at what is pasted below it."""
    said = line[-300:].rpartition(". ")[2]
    return _POINTS.match(said) is not None or _POINTS_AT_ERROR.match(said) is not None


def names_in(block: list[str]) -> str:
    """The names in a call, or in the last line of a longer output: where it stood, without the dots that would end a sentence."""
    told = block if len(block) <= _FEW_LINES else block[-1:]
    return " ".join(" ".join(_NAME.findall(line[:500])[:_MOST_NAMES]) for line in told)
