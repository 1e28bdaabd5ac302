"""Beds that were thought of and written down before the check was tried on them: what each breaks, and what must be said of it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from phalanx.lab import Bed
from phalanx.model import Report
from phalanx.preflight.launch_line import read_launch_line
from phalanx.preflight.options import CheckOptions
from tests.lab.beds import check_bed

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


def look_at(unseen: Unseen, busy: int = 0) -> tuple[Report, float]:
    """Make the bed, break it, check it."""
    line = read_launch_line(shlex.split(unseen.line))
    options = replace(
        unseen.options,
        environment={**line.variables, **unseen.options.environment},
        libraries=unseen.options.libraries or line.libraries,
        launch=line,
    )
    with Bed(unseen.count) as bed:
        unseen.apply(bed)
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            return check_bed(bed, options=options)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait(10)


def verdict_on(unseen: Unseen, report: Report) -> str:
    """`found`, or what is wrong with the answer."""
    said = [finding.cause for finding in report.findings]
    if not unseen.causes:
        return "quiet" if not said else "FALSE ALARM"
    if not all(names & set(said) for names in unseen.causes):
        return "MISSED" if not said else "OTHER CAUSE"
    accused = {host for finding in report.findings for host in finding.culprit_hosts}
    if unseen.hosts and accused - set(unseen.hosts):
        return "WRONG HOST"
    if unseen.hosts and not accused:
        return "NOBODY NAMED"
    first = said[0]
    return "found" if any(first in names for names in unseen.causes) else "NOT FIRST"
