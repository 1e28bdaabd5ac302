"""Finds, in a regular expression, a literal that every match must contain.

The scanner looks for all rules' literals at once and only then runs the expressions, so its speed does not
depend on how many rules there are. For that each expression must own such a literal: `required_literals`
returns a small set of which one must appear, e.g. `'(?:refused|reset) by peer'` gives `{' by peer'}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

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
    return best


def is_common(literal: str) -> bool:
    """Too short, or made of words that healthy logs are full of."""
    words = re.findall(r"[a-z0-9_]+", literal.lower())
    return (
        len(literal.strip()) < 5
        or (len(words) <= 1 and set(words) <= _COMMON_WORDS)
        or " ".join(words) in _COMMON_PHRASES
    )


def _worth(literals: frozenset[str], common: Callable[[str], bool]) -> tuple[bool, int, int]:
    return not any(map(common, literals)), min(len(text) for text in literals), -len(literals)


def _best_of(tokens: Any, common: Callable[[str], bool]) -> frozenset[str] | None:
    """The most selective candidate of a sequence: a run of plain characters, or what a part of it requires."""
    candidates: list[frozenset[str]] = []
    run: list[str] = []

    def close_run() -> None:
        if len(run) >= SHORTEST:
            candidates.append(frozenset({"".join(run)}))
        run.clear()

    for operator, argument in _flatten(tokens):
        if operator is sre.LITERAL:
            run.append(chr(argument))
            continue
        close_run()
        inner: frozenset[str] | None = None
        if operator is sre.BRANCH:
            inner = _any_of(argument[1], common)
        elif operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and argument[0] >= 1:
            inner = _best_of(argument[2], common)
        elif operator is sre.SUBPATTERN:
            inner = _best_of(argument[3], common)
        if inner is not None:
            candidates.append(inner)
    close_run()
    return max(candidates, key=lambda one: _worth(one, common), default=None)


def _any_of(branches: Any, common: Callable[[str], bool]) -> frozenset[str] | None:
    """Every branch must own a literal, else the branch as a whole requires none."""
    found: set[str] = set()
    for branch in branches:
        inner = _best_of(branch, common)
        if inner is None:
            return None
        found |= inner
    return frozenset(found) if len(found) <= _MOST_ALTERNATIVES else None


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
