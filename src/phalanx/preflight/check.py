"""The whole check: ask every party for its facts, compare them, lint the variables, probe the network, conclude."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Protocol, cast

from phalanx.model import Host, Rank, Report, Unchecked, World
from phalanx.preflight import lint, probes
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.findings import findings_of
from phalanx.preflight.options import CheckOptions, NetworkOptions
from phalanx.preflight.parties import AgentError, Failure, Party
from phalanx.preflight.unreached import party_name, readings_of_failures, readings_of_paths, silent_party
from phalanx.preflight.witness import Witness, rank_of

_CLOCK_ASKED = 3
_MOST_AT_ONCE = 64


class Comparison(Protocol):
    """What a module of `probes/` or `lint/` offers."""

    def examine(self, witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
        """Look at all parties' facts."""


def examine(
    parties: Sequence[Party], options: CheckOptions, failures: Sequence[Failure] = (), seen: Sequence[CheckFact] = ()
) -> Report:
    """Everything that can be found out, beside what was seen on the way. The parties are left open."""
    named, witnesses, silent, unchecked = gather(parties, options)
    options.say("comparing")
    readings, more = judge_facts(witnesses, options)
    readings += [*seen, *silent, *readings_of_failures(failures), *readings_of_paths(named)]
    if any(one.fact.id == "check.rank-missing" for one in readings):  # which says the same, by the ranks' own numbers
        readings = [one for one in readings if one.fact.id != "check.rank-did-not-come-to-the-check"]
    unchecked += more
    if options.network and len(named) > 1:
        found, more, proven = _probe_network(named, witnesses, options)
        readings = [reading for reading in readings if not reading.unless or reading.unless not in proven] + found
        unchecked += more
    return make_report(readings, witnesses, unchecked)


def examine_printed(printed: Sequence[dict[str, Any]], options: CheckOptions) -> Report:
    """The same for facts that ranks have printed; of the network nothing is known then."""
    hosts = [str(facts.get("who", {}).get("hostname") or "unknown host") for facts in printed]
    witnesses: list[Witness] = []
    for host, facts in zip(hosts, printed, strict=True):
        taken = {one.label for one in witnesses}
        witnesses.append(_witness((), host, facts, (None, 0.0), hosts.count(host) == 1, taken))
    readings, unchecked = judge_facts(witnesses, options)
    unchecked.append(Unchecked("the network between the ranks", "ranks that can be asked: --meet DIR, or --hosts"))
    return make_report(readings, witnesses, unchecked)


def gather(
    parties: Sequence[Party], options: CheckOptions
) -> tuple[list[Party], list[Witness], list[CheckFact], list[Unchecked]]:
    """The facts of every party, asked at once; a party that does not answer is itself a finding."""
    options.say(f"asking {len(parties)} part{'ies' if len(parties) > 1 else 'y'} for facts")
    args = {"environment": dict(options.environment), "paths": list(options.paths), "code": list(options.code)}
    if options.launch.prefix:
        args["programs"] = [f"{options.launch.prefix}/bin/{name}" for name in ("orted", "prted")]
    named: list[Party] = []
    witnesses: list[Witness] = []
    silent: list[CheckFact] = []
    unchecked: list[Unchecked] = []
    with ThreadPoolExecutor(min(max(1, len(parties)), _MOST_AT_ONCE)) as pool:
        told = list(pool.map(lambda party: _ask(party, _with_own(args, party, options), options.patience), parties))
        hosts = [_host_of(party, facts) for party, (facts, _, _, _) in zip(parties, told, strict=True)]
        for party, host, (facts, ahead, error, why) in zip(parties, hosts, told, strict=True):
            if facts is None:
                silent.append(silent_party(party_name(party), why, party.host))
                continue
            is_alone = hosts.count(host) == 1
            witness = _witness(party.ranks, host, facts, (ahead, error), is_alone, {one.label for one in witnesses})
            witnesses.append(witness)
            named.append(party.renamed(witness.label, witness.host, witness.ranks))
            for section, reason in facts.get("missing", {}).items():
                unchecked.append(Unchecked(f"{section} on {witness.label}", reason, essential=True))
        if len(witnesses) > 1:
            witnesses = _with_names(named, witnesses, pool)
    return named, witnesses, silent, unchecked


def _with_own(args: dict[str, Any], party: Party, options: CheckOptions) -> dict[str, Any]:
    """What a host is asked, with the variables of its own launch command."""
    own = options.launches.get(party.host)
    return {**args, "environment": {**args["environment"], **own.variables}} if own is not None else args


def _ask(party: Party, args: dict[str, Any], patience: float) -> tuple[dict[str, Any] | None, float | None, float, str]:
    """Facts, how far its clock is ahead, by how much that may be wrong, and why there is nothing."""
    try:
        facts = party.ask("facts", args, patience + 2.0)[0]
        best: tuple[float, float] | None = None
        for _ in range(_CLOCK_ASKED):
            before = time.time()
            there = float(party.ask("clock", {}, patience)[0]["time"])
            after = time.time()
            error = (after - before) / 2
            if best is None or error < best[1]:
                best = (there - (before + after) / 2, error)
    except (AgentError, LookupError) as problem:
        return None, None, 0.0, str(problem) or "no answer"
    return facts, best[0] if best else None, best[1] if best else 0.0, ""


def _host_of(party: Party, facts: dict[str, Any] | None) -> str:
    return party.host or str((facts or {}).get("who", {}).get("hostname") or "this machine")


def _witness(
    given: tuple[int, ...],
    host: str,
    facts: dict[str, Any],
    clock: tuple[float | None, float],
    is_alone: bool,
    taken: set[str],
) -> Witness:
    """A party under the name that people know it by: its host's, or its rank's where it shares the host."""
    rank = rank_of(facts.get("environment", {}).get("variables", {}))
    ranks = given or ((rank,) if rank is not None else ())
    label = host if is_alone or not ranks else f"rank {ranks[0]} on {host}"
    number = 2
    while label in taken:
        label = f"{host if not ranks else f'rank {ranks[0]} on {host}'} ({number})"
        number += 1
    return Witness(label, host, ranks, facts, *clock)


def _with_names(parties: Sequence[Party], witnesses: Sequence[Witness], pool: ThreadPoolExecutor) -> list[Witness]:
    """Every party looks up every host's own name."""
    names = list(dict.fromkeys(str(witness.section("names").get("own") or "") for witness in witnesses))
    names = [name for name in names if name]

    def look_up(party: Party) -> Mapping[str, Any]:
        try:
            return party.ask("resolve", {"names": names}, 4.0)[0]
        except (AgentError, LookupError):
            return {}

    found = pool.map(look_up, parties)
    return [
        Witness(one.label, one.host, one.ranks, one.facts, one.clock_ahead, one.clock_error, resolved)
        for one, resolved in zip(witnesses, found, strict=True)
    ]


def judge_facts(witnesses: Sequence[Witness], options: CheckOptions) -> tuple[list[CheckFact], list[Unchecked]]:
    """Every comparison and every lint."""
    readings: list[CheckFact] = []
    unchecked: list[Unchecked] = []
    for module in [*_modules(probes), *_modules(lint)]:
        for found in module.examine(witnesses, options):
            if isinstance(found, CheckFact):
                readings.append(found)
            else:
                unchecked.append(found)
    return readings, unchecked


def _modules(package: ModuleType) -> list[Comparison]:
    names = sorted(found.name for found in iter_modules(package.__path__))
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    return [cast(Comparison, module) for module in modules if hasattr(module, "examine")]


def _probe_network(
    parties: Sequence[Party], witnesses: Sequence[Witness], options: CheckOptions
) -> tuple[list[CheckFact], list[Unchecked], frozenset[str]]:
    from phalanx.preflight.network import probe_network  # loaded only when there are packets to send

    asked = NetworkOptions(options.timeout, options.large, store_of(witnesses), options.say, options.libraries)
    return probe_network(parties, {one.label: one for one in witnesses}, asked)


def store_of(witnesses: Sequence[Witness]) -> tuple[str, int] | None:
    """Where the ranks would meet, by what most of them are told."""
    told = [(place.address, place.number) for one in witnesses if (place := one.place) is not None and place.number]
    return max(set(told), key=told.count) if told else None


def make_report(readings: Sequence[CheckFact], witnesses: Sequence[Witness], unchecked: Sequence[Unchecked]) -> Report:
    """The report of the contract."""
    hosts: dict[str, list[int]] = {}
    for witness in witnesses:
        hosts.setdefault(witness.host, []).extend(witness.ranks)
    ranks = {rank: witness.host for witness in witnesses for rank in witness.ranks}
    sizes = [int(size) for one in witnesses if (size := one.variable("WORLD_SIZE") or "").isdigit()]
    world = World(
        size=max(set(sizes), key=sizes.count) if sizes else None,
        launcher=None,
        hosts=tuple(Host(name, tuple(sorted(set(found)))) for name, found in hosts.items()),
        ranks=tuple(Rank(number, host) for number, host in sorted(ranks.items())),
    )
    by_label = {witness.label: witness for witness in witnesses}
    findings = findings_of(readings, by_label)
    kept = tuple(dict.fromkeys(unchecked))
    return Report(world, tuple(findings), kept, tuple(witness.label for witness in witnesses))
