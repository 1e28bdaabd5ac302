"""Brings the targets of a check together, by whatever way the user has, and examines them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from phalanx.model import Report
from phalanx.model.ranks import name_all, name_ranks
from phalanx.preflight.alone import seen_from_here
from phalanx.preflight.check import examine
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.group_result import GroupResult, probe_group
from phalanx.preflight.meeting.gathering import Gatherer, Gathering
from phalanx.preflight.meeting.seat import Seat, local_folder
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.targets import AgentError, Failure, Target, by_command, by_ssh, start_all, this_machine


class CheckError(Exception):
    """The check cannot be made as it was asked for; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Convening:
    """How the user wants the targets to be reached."""

    hosts: tuple[str, ...] | None = None
    each: tuple[str, ...] = ()
    python: str | None = None
    wait: float = 20.0
    meet: Path | None = None
    alone: bool = False
    link: bool = True  # ranks that do not find each other may call out on the link
    ray: str | None = None  # the address of a cluster, or auto


def convene(convening: Convening, options: CheckOptions) -> Report:
    """Examine hosts from here, or this machine alone."""
    if convening.meet is not None:
        raise CheckError(
            "--meet is for ranks that a launcher starts, and no rank and size were found in the environment "
            "(RANK and WORLD_SIZE, OMPI_COMM_WORLD_RANK, SLURM_PROCID, …)"
        )
    failures: list[Failure] = []
    if convening.ray is not None:
        from phalanx.preflight.meeting.on_ray import targets_on_ray  # Ray takes seconds to load

        try:
            targets = targets_on_ray(convening.ray, convening.wait)
        except AgentError as error:
            raise CheckError(f"--ray {convening.ray}: {error}") from error
    elif starters := _starters(convening):
        targets, failures = start_all(starters)
    else:
        targets = [this_machine()]
    try:
        return examine(targets, options, failures)
    finally:
        for target in targets:
            target.close()


def _starters(convening: Convening) -> list[Callable[[], Target | Failure]]:
    names = list(convening.hosts or ())
    if not convening.each:
        return [partial(by_ssh, name, convening.python, convening.wait) for name in names]
    templates = convening.each * len(names) if len(convening.each) == 1 else convening.each
    if len(templates) != len(names):
        raise CheckError(
            f"--each is given {len(templates)} times for {len(names)} hosts: give it once, or once for each"
        )
    return [
        partial(by_command, name, template, convening.python, convening.wait)
        for name, template in zip(names, templates, strict=True)
    ]


def take_part(seat: Seat, convening: Convening, options: CheckOptions) -> Report | None:
    """One of many ranks: lead the check, or answer whoever leads. None where another rank writes the report."""
    with _meeting(seat, convening, options) as (gatherer, found, way):
        if not found.leads:
            return None
        report = examine(found.targets, options, seen=_absent(found, seat, way))
        if late := gatherer.latecomers():  # "nothing wrong" without them would be false
            found.targets += late
            report = examine(found.targets, options)
        return report


def probe_for_print(seat: Seat, convening: Convening, options: CheckOptions) -> GroupResult | None:
    """The same for ranks that print: what the network shows among those who met. None where another rank prints it."""
    with _meeting(seat, convening, options) as (_, found, way):
        return probe_group(found.targets, options, _absent(found, seat, way)) if found.leads else None


@contextmanager
def _meeting(seat: Seat, convening: Convening, options: CheckOptions) -> Iterator[tuple[Gatherer, Gathering, str]]:
    """Who came together, and by what way; afterwards all are let go."""
    if convening.meet is not None:
        place, way = convening.meet / f"phalanx-check-{seat.job}", f"the folder {convening.meet}"
    elif seat.is_local:
        place, way = local_folder(seat), "a folder on this host"
    else:  # launchers start ranks where they are called, and that is mostly a folder that all nodes share
        place, way = Path.cwd() / f"phalanx-check-{seat.job}", f"the folder {Path.cwd()}"
        way += f" or {seat.store[0]}:{seat.store[1]} (MASTER_ADDR)" if seat.store is not None else ""
    by_network = convening.meet is None and not seat.is_local and options.network
    gatherer = _gatherer(seat, place, by_network, convening)
    found = Gathering(leads=False)
    try:
        found = gatherer.gather(options.say)
        yield gatherer, found, way
    finally:
        for target in found.targets:
            target.close()
        gatherer.close()


def _gatherer(seat: Seat, place: Path, by_network: bool, convening: Convening) -> Gatherer:
    try:
        return Gatherer(seat, place, by_network, convening.wait, convening.link)
    except OSError as error:
        if by_network:
            return Gatherer(seat, None, by_network, convening.wait, convening.link)
        raise CheckError(
            f"rank {seat.rank} of {seat.size} cannot use {place.parent} to meet the others: {error.strerror or error}. Give --meet with a "
            "folder that every rank can write, or set MASTER_ADDR and MASTER_PORT, or let all ranks --print and read it by phalanx check --read -"
        ) from error


def _absent(found: Gathering, seat: Seat, way: str) -> list[CheckFact]:
    if seat.is_node and len(found.targets) < found.size:
        hosts = tuple(sorted({target.host for target in found.targets}))
        count = found.size - len(found.targets)
        absent_nodes = f"{count} node{'s' if count > 1 else ''}"
        seconds = round(found.waited, 1)
        return [
            observe(
                "rank-did-not-come-to-the-check",
                (),
                hosts,
                size=found.size,
                nodes=True,
                absent=absent_nodes,
                seconds=seconds,
                way=way,
            )
        ]
    came = {rank for target in found.targets for rank in target.ranks}
    absent = sorted(set(range(found.size)) - came)
    if not absent or len(found.targets) >= found.size:
        return []  # all came: if numbers are wrong, the comparison of ranks says so
    fact = observe(
        "rank-did-not-come-to-the-check",
        (),
        tuple(sorted({target.host for target in found.targets})),
        size=found.size,
        absent=name_ranks(absent),
        seconds=round(found.waited, 1),
        way=way,
        heard=name_all(f"rank {one.rank} on {one.host}" for one in found.heard if one.rank not in came) or None,
    )
    if seat.store is None or 0 in came:
        return [fact]
    seen = seen_from_here(seat.store, alone=len(found.targets) == 1 and not found.heard, size=found.size)
    explained = any(one.fact.id != "check.meeting-place-not-reached" for one in seen)
    return seen if explained else [fact, *seen]
