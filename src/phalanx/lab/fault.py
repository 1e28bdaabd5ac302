"""What a fault of the lab is, and how its file is found: `faults/<name>.py` with a docstring, `EXPECTED` and `apply(bed, …)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from phalanx.lab import faults
from phalanx.lab.errors import LabError

if TYPE_CHECKING:
    from phalanx.lab.bed import Bed


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be found: the cause's name (none: the bed is healthy), its symptom, the hosts to be named, and when it can be seen."""

    cause: str = ""
    symptom: str = "comm.setup-failure"
    hosts: tuple[str, ...] = ()
    at_least: int = 2  # hosts that the fault needs to show
    found_by: str = "check"  # or run: it happens in the middle of a job
    also: tuple[str, ...] = ()  # other names under which it is found rightly
    only_outside: bool = False  # it lies in how hosts are reached or in launch commands, which ranks do not see
    only_inside: bool = False  # it lies between the ranks of one host, of which one is asked from outside
    held_back: bool = False  # only for scores: nothing is changed for its sake


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to break a bed."""

    name: str
    about: str
    expected: Expected
    function: Callable[..., None]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What can be chosen, with its defaults."""
        found = list(inspect.signature(self.function).parameters.values())[1:]
        return {one.name: one.default for one in found}

    def apply(self, bed: Bed, chosen: Mapping[str, str] | None = None) -> None:
        """Break the bed."""
        if len(bed.hosts) < self.expected.at_least:
            raise LabError(
                f"{self.name} needs {self.expected.at_least} hosts or more: phalanx lab up -n {self.expected.at_least}"
            )
        self.function(bed, **self._typed(chosen or {}))
        bed.applied.append(self.name)

    def _typed(self, chosen: Mapping[str, str]) -> dict[str, Any]:
        """Values from the command line in the types of the defaults."""
        typed: dict[str, Any] = {}
        for name, value in chosen.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise LabError(f"{self.name} has no parameter {name}; it has: {known}")
            kind = type(self.parameters[name])
            try:
                typed[name] = kind(value)
            except ValueError as error:
                raise LabError(f"{self.name}: {name}={value} is not a {kind.__name__}") from error
        return typed


@cache
def load_faults() -> Mapping[str, Fault]:
    """All faults by name."""
    found = {}
    for module in sorted(iter_modules(faults.__path__), key=lambda one: one.name):
        loaded = import_module(f"{faults.__name__}.{module.name}")
        name = module.name.replace("_", "-")
        about = (loaded.__doc__ or "").strip().splitlines()[0]
        found[name] = Fault(name, about, loaded.EXPECTED, loaded.apply)
    return found


def find_fault(written: str) -> tuple[Fault, dict[str, str]]:
    """`loss` or `loss:percent=10,host=h2` to a fault and what was chosen."""
    name, _, rest = written.partition(":")
    known = load_faults()
    if name not in known:
        near = [other for other in known if name in other or other.split("-")[0] == name.split("-")[0]]
        hint = f"; there are {', '.join(near)}" if near else ""
        raise LabError(f"there is no fault {name}{hint}. phalanx lab faults lists all")
    chosen = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise LabError(f"write {name}:parameter=value, not {written}")
        chosen[key] = value
    return known[name], chosen


def apply_faults(bed: Bed, written: tuple[str, ...] | list[str]) -> None:
    """Break a bed in the ways named."""
    for one in written:
        fault, chosen = find_fault(one)
        fault.apply(bed, chosen)
