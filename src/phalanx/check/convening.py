"""Brings the parties of a check together, by whatever way the user has, and examines them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from phalanx.check.check import examine
from phalanx.check.check_fact import CheckFact, observe
from phalanx.check.meeting import folder, store
from phalanx.check.meeting.seat import Seat, local_folder
from phalanx.check.options import CheckOptions
from phalanx.check.parties import AgentError, Failure, Party, by_command, by_ssh, start_all, this_machine
from phalanx.model import Report
from phalanx.model.ranks import name_ranks


class CheckError(Exception):
    """The check cannot be made as it was asked for; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Convening:
    """How the user wants the parties to be reached."""

    hosts: str | None = None
    each: tuple[str, ...] = ()
    python: str | None = None
    wait: float = 20.0
    meet: Path | None = None
    alone: bool = False
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
        from phalanx.check.meeting.on_ray import parties_on_ray  # Ray takes seconds to load

        try:
            parties = parties_on_ray(convening.ray)
        except AgentError as error:
            raise CheckError(f"--ray {convening.ray}: {error}") from error
    elif starters := _starters(convening):
        parties, failures = start_all(starters)
    else:
        parties = [this_machine()]
    try:
        return examine(parties, options, failures)
    finally:
        for party in parties:
            party.close()


def _starters(convening: Convening) -> list[Callable[[], Party | Failure]]:
    names = [name.strip() for name in (convening.hosts or "").split(",") if name.strip()]
    if convening.hosts is not None and not names:
        raise CheckError("--hosts: give names, as in node0,node1")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CheckError(f"--hosts: {twice} stands there twice")
    if not convening.each:
        return [partial(by_ssh, name, convening.python, convening.wait) for name in names]
    names = names or [""] * len(convening.each)
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
    if convening.meet is None and seat.is_local:
        return _by_folder(local_folder(seat), "a folder on this host", seat, convening, options)
    if convening.meet is None and seat.store is not None:
        return _by_store(seat, convening, options)
    # Launchers start ranks where they are called, and that is mostly a folder that all nodes share.
    shared = convening.meet if convening.meet is not None else Path.cwd()
    way = f"the folder {shared}{'' if convening.meet else ' (another one: --meet)'}"
    return _by_folder(shared / f"phalanx-check-{seat.job}", way, seat, convening, options)


def _by_folder(place: Path, way: str, seat: Seat, convening: Convening, options: CheckOptions) -> Report | None:
    try:
        if folder.attend(place, seat):
            return None
        with folder.leading(place, seat, convening.wait, options.say) as parties:
            return examine(parties, options, seen=_absent(parties, seat, convening.wait, way))
    except OSError as error:
        raise CheckError(
            f"rank {seat.rank} of {seat.size} cannot use {place.parent} to meet the others: {error.strerror or error}. Give --meet with a "
            "folder that every rank can write, or set MASTER_ADDR and MASTER_PORT, or let all ranks --print and read it by phalanx check --read -"
        ) from error


def _by_store(seat: Seat, convening: Convening, options: CheckOptions) -> Report | None:
    assert seat.store is not None
    where = f"{seat.store[0]}:{seat.store[1]}"
    if seat.rank != 0:
        problem = store.attend(seat, convening.wait)
        if problem is None:
            return None
        label = socket.gethostname()
        seen = observe("meeting-place-not-reached", (label,), address=where, error=problem)
        return examine([this_machine(label)], options, seen=[seen])
    try:
        with store.leading(seat, convening.wait, options.say) as parties:
            return examine(parties, options, seen=_absent(parties, seat, convening.wait, f"MASTER_ADDR ({where})"))
    except OSError:  # no port: the facts say who has it
        return examine([this_machine()], options)


def _absent(parties: list[Party], seat: Seat, wait: float, way: str) -> list[CheckFact]:
    came = {rank for party in parties for rank in party.ranks}
    absent = sorted(set(range(seat.size)) - came)
    if not absent or len(parties) >= seat.size:
        return []  # all came: if numbers are wrong, the comparison of ranks says so
    return [
        observe(
            "rank-did-not-come-to-the-check",
            (),
            tuple(sorted({party.host for party in parties})),
            size=seat.size,
            absent=name_ranks(absent),
            seconds=wait,
            way=way,
        )
    ]
