"""Finds, in a regular expression, a literal that every match must contain.

The scanner looks for all rules' literals at once and only then runs the expressions, so its speed does not
depend on how many rules there are. For that each expression must own such a literal: `required_literals`
returns a small set of which one must appear, e.g. `'(?:refused|reset) by peer'` gives `{' by peer'}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

SHORTEST = 4
# Words that stand in every other line of a healthy log: looking for them by themselves would find nothing but noise.
_COMMON_WORDS = frozenset(
    [
        "loss",
        "losses",
        "error",
        "errors",
        "failed",
        "failure",
        "world",
        "size",
        "world_size",
        "data",
        "dataset",
        "train",
        "training",
        "shard",
        "shards",
        "nodes",
        "ranks",
        "rank",
        "device",
        "devices",
        "tensor",
        "tensors",
        "memory",
        "exit",
        "exitcode",
        "strategy",
        "replica",
        "replicas",
        "distribut",
        "distributed",
        "missing",
        "unexpected",
        "loading",
        "expected",
        "invalid",
        "different",
        "finite",
        "sampler",
        "only",
        "not",
        "found",
        "match",
        "valid",
        "grads",
        "metric",
        "optimizer",
        "gradient",
        "torch",
        "torchrun",
        "horovod",
        "spark",
        "class",
        "label",
        "token",
        "record",
        "sample",
        "samples",
        "column",
        "word",
        "table",
        "info",
        "warning",
        "init",
        "connect",
        "connected",
        "model",
        "batch",
        "step",
        "epoch",
        "iteration",
        "rate",
        "learning",
        "checkpoint",
        "saving",
        "saved",
        "save",
        "traceback",
        "exception",
        "oserror",
        "runtimeerror",
        "sigterm",
        "address",
        "pointer",
        "differ",
        "linked",
        "compiled",
        "kill",
        "killed",
        "reason",
        "fp16",
        "float16",
        "scaler",
        "load",
        "num_workers",
        "workers",
        "worker",
        "less",
        "than",
        "set",
        "unknown",
        "the",
        "nccl",
        "is",
        "be",
        "must",
        "with",
        "for",
        "from",
        "time",
        "version",
        "option",
        "options",
        "argument",
        "arguments",
        "value",
        "values",
        "file",
        "files",
        "process",
        "processes",
    ]
)
_MOST_ALTERNATIVES = 24
_MOST_COMPOSED = 16
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_COMMON_PHRASES = frozenset({"nccl info", "world size", "learning rate", "batch size", "num workers", "net ib"})


def check_syntax(pattern: str) -> None:
    """Raise re.error if this is no regular expression."""
    sre_parser.parse(pattern)


def required_literals(pattern: str, common: Callable[[str], bool] | None = None) -> frozenset[str]:
    """One string of the returned set is in every match, in any case of letters if the pattern ignores case.

    Of several such sets one is chosen in which no string is common: by what is known of logs, or by who asks.
    """
    best = _best_of(sre_parser.parse(pattern).data, common or is_common)
    if best is None:
        raise ValueError(
            f"the expression {pattern!r} has no literal of {SHORTEST} or more characters that every match contains; "
            "make it more specific"
        )
    return best.literals


def is_common(literal: str) -> bool:
    """Too short, or made of words that healthy logs are full of."""
    words = re.findall(r"[a-z0-9_]+", literal.lower())
    return (
        len(literal.strip()) < 5
        or (len(words) <= 1 and set(words) <= _COMMON_WORDS)
        or " ".join(words) in _COMMON_PHRASES
    )


class _Candidate(NamedTuple):
    """Strings of which one stands in every match; `is_plain` if the expression spells each of them out."""

    literals: frozenset[str]
    is_plain: bool = True

    def worth(self, common: Callable[[str], bool]) -> tuple[bool, bool, int, int]:
        """The greater, the better. Composed strings are many: they are for want of plain ones that are rare."""
        return not any(map(common, self.literals)), self.is_plain, min(map(len, self.literals)), -len(self.literals)


def _best_of(tokens: Any, common: Callable[[str], bool]) -> _Candidate | None:
    """The most selective candidate of a sequence: a run of characters, or what a part of it requires."""
    candidates = [*_plain_runs(tokens), *_composed_runs(tokens)]
    for operator, argument in tokens:
        inner: _Candidate | None = None
        if operator is sre.BRANCH:
            inner = _any_of(argument[1], common)
        elif operator in _REPEATS and argument[0] >= 1:
            inner = _best_of(argument[2], common)
        elif operator is sre.SUBPATTERN:
            inner = _best_of(argument[3], common)
        if inner is not None:
            candidates.append(inner)
    return max(candidates, key=lambda one: one.worth(common), default=None)


def _plain_runs(tokens: Any) -> Iterator[_Candidate]:
    """Characters that stand one after the other."""
    for is_literal, run in groupby(_flatten(tokens), key=lambda token: token[0] is sre.LITERAL):
        text = "".join(chr(argument) for _, argument in run) if is_literal else ""
        if len(text) >= SHORTEST:
            yield _Candidate(frozenset({text}))


def _composed_runs(tokens: Any) -> Iterator[_Candidate]:
    """All that a stretch of the sequence can be, where that is but a few strings: `timed? ?out` is one of four."""
    run = [""]
    for token in tokens:
        spelt = _all_of([token])
        longer = [left + right for left in run for right in spelt or ()]
        if not longer or len(longer) > _MOST_COMPOSED:
            yield from _composed(run)
            longer = spelt or [""]
        elif len(longer) > len(run):  # fewer of them may do
            yield from _composed(run)
        run = longer
    yield from _composed(run)


def _composed(run: list[str]) -> Iterator[_Candidate]:
    if len(run) > 1 and min(map(len, run)) >= SHORTEST:  # what holds another of them need not be looked for
        yield _Candidate(frozenset(one for one in run if not any(two != one and two in one for two in run)), False)


def _all_of(tokens: Any) -> list[str] | None:
    """Every string that the sequence matches, if there are few."""
    strings = [""]
    for operator, argument in tokens:
        spelt: list[str] | None = None
        if operator is sre.LITERAL:
            spelt = [chr(argument)]
        elif operator in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            spelt = [""]
        elif operator is sre.IN and all(kind is sre.LITERAL for kind, _ in argument):
            spelt = [chr(character) for _, character in argument]
        elif operator is sre.SUBPATTERN:
            spelt = _all_of(argument[3])
        elif operator is sre.BRANCH:
            branches = [_all_of(branch) for branch in argument[1]]
            spelt = None if None in branches else [text for branch in branches for text in branch or ()]
        elif operator in _REPEATS and tuple(argument[:2]) == (0, 1):
            inner = _all_of(argument[2])
            spelt = None if inner is None else ["", *inner]
        if spelt is None or len(strings) * len(spelt) > _MOST_COMPOSED:
            return None
        strings = [left + right for left in strings for right in spelt]
    return strings


def _any_of(branches: Any, common: Callable[[str], bool]) -> _Candidate | None:
    """Every branch must own a literal, else the branch as a whole requires none."""
    found = [_best_of(branch, common) for branch in branches]
    if None in found:
        return None
    literals = frozenset(literal for one in found if one is not None for literal in one.literals)
    is_plain = all(one.is_plain for one in found if one is not None)
    return _Candidate(literals, is_plain) if len(literals) <= _MOST_ALTERNATIVES else None


def _flatten(tokens: Any) -> list[tuple[Any, Any]]:
    """Opens groups that hold a plain sequence, so that `foo (?P<x>bar)` is one run of characters."""
    flat: list[tuple[Any, Any]] = []
    for operator, argument in tokens:
        if operator is sre.SUBPATTERN:
            inner = list(argument[3])
            if inner and all(op is sre.LITERAL for op, _ in inner):
                flat.extend(inner)
                continue
        flat.append((operator, argument))
    return flat
