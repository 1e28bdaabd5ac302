"""Beds that were thought of and written down before the check was tried on them: what each breaks, and what must be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from phalanx.check.options import CheckOptions
from phalanx.lab import Bed

Break = Callable[[Bed], None]


@dataclass(frozen=True, slots=True)
class Unseen:
    """One bed. `causes`: for each fault in it the names under which it is found rightly; `hosts`: who must be named, nobody else accused."""

    name: str
    apply: Break
    causes: tuple[frozenset[str], ...] = ()  # none: it is healthy
    hosts: tuple[str, ...] = ()
    count: int = 3
    line: str = ""  # a launch command, as given after --
    options: CheckOptions = CheckOptions()  # noqa: RUF009 (frozen)


BEDS: dict[str, Unseen] = {}


def broken(
    *causes: str, hosts: str = "", count: int = 3, line: str = "", options: CheckOptions | None = None
) -> Callable[[Break], Break]:
    """A bed with one fault for each word; `a|b` are two names for the same."""

    def keep(function: Break) -> Break:
        name = function.__name__.replace("_", "-")
        assert name not in BEDS
        named = tuple(frozenset(one.split("|")) for one in causes)
        BEDS[name] = Unseen(name, function, named, tuple(hosts.split()), count, line, options or CheckOptions())
        return function

    return keep


def healthy(*, count: int = 3, line: str = "", options: CheckOptions | None = None) -> Callable[[Break], Break]:
    """A bed that is odd, but on which the job runs."""
    return broken(count=count, line=line, options=options)
