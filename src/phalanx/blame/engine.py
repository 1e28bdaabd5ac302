"""Asks the strategies in their order who is to blame: the first that accuses somebody decides."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

from phalanx.blame import strategies
from phalanx.blame.table import NOBODY, About, Accusation, RankTable


class Strategy(NamedTuple):
    """One module of `strategies`: its place in the order, its name, the failures it judges, and its function."""

    order: int
    name: str
    about: frozenset[About]
    accuse: Callable[[RankTable], Accusation | None]


@cache
def all_strategies() -> tuple[Strategy, ...]:
    """Every module of the package `strategies`, by its ORDER, which no two may share."""
    found = []
    for info in pkgutil.iter_modules(strategies.__path__):
        module = importlib.import_module(f"{strategies.__name__}.{info.name}")
        found.append(Strategy(module.ORDER, info.name.replace("_", "-"), frozenset(module.ABOUT), module.accuse))
    ordered = sorted(found)
    if len({one.order for one in ordered}) != len(ordered):
        raise ValueError("two strategies have the same ORDER")
    return tuple(ordered)


_LEFT_OUT: ContextVar[frozenset[str]] = ContextVar("strategies that are not asked", default=frozenset())


@contextmanager
def left_out(*names: str) -> Iterator[None]:
    """Do not ask these strategies, so that an ablation can show what each one earns."""
    token = _LEFT_OUT.set(frozenset(names))
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)


def accuse(table: RankTable, *, without: frozenset[str] = frozenset()) -> Accusation:
    """Who is to blame for the failure that the table shows; NOBODY where no strategy applies.

    `without` leaves strategies out, as `left_out` does around a whole diagnosis.
    """
    without = without | _LEFT_OUT.get()
    for strategy in all_strategies():
        if table.about not in strategy.about or strategy.name in without:
            continue
        found = strategy.accuse(table)
        if found is not None:
            return found
    return NOBODY
