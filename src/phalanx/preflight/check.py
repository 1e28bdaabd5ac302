"""The whole check: ask every target for its facts, compare them, lint the variables, probe the network, conclude."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from phalanx.model import Host, Rank, Report, Unchecked, World
from phalanx.preflight import lint, probes
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.coverage import coverage_of
from phalanx.preflight.findings import findings_of
from phalanx.preflight.host_facts import HostFacts, rank_of
from phalanx.preflight.options import CheckOptions, NetworkOptions
from phalanx.preflight.targets import AgentError, Failure, Target
from phalanx.preflight.unreached import facts_of_failures, facts_of_paths, silent_target, target_name

if TYPE_CHECKING:
    from phalanx.preflight.network import NetworkResult

_OTHERS = "--hosts node0,node1, or to be started by your launcher in place of the script: torchrun … -m phalanx.check"
_CLOCK_ASKED = 3
_MOST_AT_ONCE = 64


class Comparison(Protocol):
    """What a module of `probes/` or `lint/` offers."""

    def examine(self, all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
        """Look at all targets' facts."""


def examine(
    targets: Sequence[Target], options: CheckOptions, failures: Sequence[Failure] = (), seen: Sequence[CheckFact] = ()
) -> Report:
    """Everything that can be found out, beside what was seen on the way. The targets are left open."""
    named, all_facts, silent, unchecked = gather(targets, options)
    options.say("comparing")
    check_facts, more = judge_facts(all_facts, options)
    check_facts += [*seen, *silent, *facts_of_failures(failures), *facts_of_paths(named)]
    by_number = [one for one in check_facts if one.fact.id == "check.rank-missing"]
    if by_number and (failures or silent):  # they may be on the hosts that did not answer
        check_facts = [one for one in check_facts if one not in by_number]
        more += [Unchecked(str(one.fact.fields["absent"]), "the hosts that did not answer") for one in by_number]
    elif by_number:  # which says the same, by the ranks' own numbers
        check_facts = [one for one in check_facts if one.fact.id != "check.rank-did-not-come-to-the-check"]
    unchecked += more
    network = probe_network_of(named, all_facts, options)
    check_facts = [one for one in check_facts if not one.unless or one.unless not in network.proven] + network.facts
    unchecked += network.unchecked
    if len(targets) == 1 and not failures and not seen:
        unchecked.append(Unchecked("other hosts and the network between them", _OTHERS))
    return make_report(check_facts, all_facts, unchecked, network.calls, network.measured)


def gather(
    targets: Sequence[Target], options: CheckOptions
) -> tuple[list[Target], list[HostFacts], list[CheckFact], list[Unchecked]]:
    """The facts of every target, asked at once; a target that does not answer is itself a finding."""
    options.say(f"asking {len(targets)} target{'s' if len(targets) > 1 else ''} for facts")
    args = {"environment": dict(options.environment), "paths": list(options.paths), "code": list(options.code)}
    if options.launch.prefix:
        args["programs"] = [f"{options.launch.prefix}/bin/{name}" for name in ("orted", "prted")]
    named: list[Target] = []
    all_facts: list[HostFacts] = []
    silent: list[CheckFact] = []
    unchecked: list[Unchecked] = []
    with ThreadPoolExecutor(min(max(1, len(targets)), _MOST_AT_ONCE)) as pool:
        told = list(pool.map(lambda target: _ask(target, _with_own(args, target, options), options.patience), targets))
        hosts = [_host_of(target, facts) for target, (facts, _, _, _) in zip(targets, told, strict=True)]
        for target, host, (facts, ahead, error, why) in zip(targets, hosts, told, strict=True):
            if facts is None:
                silent.append(silent_target(target_name(target), why, target.host))
                continue
            is_alone = hosts.count(host) == 1
            host_facts = host_facts_of(
                target.ranks, host, facts, (ahead, error), is_alone, {one.label for one in all_facts}
            )
            all_facts.append(host_facts)
            named.append(target.renamed(host_facts.label, host_facts.host, host_facts.ranks))
            for section, reason in facts.get("missing", {}).items():
                unchecked.append(Unchecked(f"{section} on {host_facts.label}", reason, essential=True))
        if len(all_facts) > 1:
            all_facts = _with_names(named, all_facts, pool)
    return named, all_facts, silent, unchecked


def _with_own(args: dict[str, Any], target: Target, options: CheckOptions) -> dict[str, Any]:
    """What a host is asked, with the variables of its own launch command."""
    own = options.launches.get(target.host)
    return {**args, "environment": {**args["environment"], **own.variables}} if own is not None else args


def _ask(
    target: Target, args: dict[str, Any], patience: float
) -> tuple[dict[str, Any] | None, float | None, float, str]:
    """Facts, how far its clock is ahead, by how much that may be wrong, and why there is nothing."""
    try:
        facts = target.ask("facts", args, patience + 2.0)[0]
        best: tuple[float, float] | None = None
        for _ in range(_CLOCK_ASKED):
            before = time.time()
            there = float(target.ask("clock", {}, patience)[0]["time"])
            after = time.time()
            error = (after - before) / 2
            if best is None or error < best[1]:
                best = (there - (before + after) / 2, error)
    except (AgentError, LookupError) as problem:
        return None, None, 0.0, str(problem) or "no answer"
    return facts, best[0] if best else None, best[1] if best else 0.0, ""


def _host_of(target: Target, facts: dict[str, Any] | None) -> str:
    return target.host or str((facts or {}).get("who", {}).get("hostname") or "this machine")


def host_facts_of(
    given: tuple[int, ...],
    host: str,
    facts: dict[str, Any],
    clock: tuple[float | None, float],
    is_alone: bool,
    taken: set[str],
) -> HostFacts:
    """A target under the name that people know it by: its host's, or its rank's where it shares the host."""
    rank = rank_of(facts.get("environment", {}).get("variables", {}))
    ranks = given or ((rank,) if rank is not None else ())
    label = host if is_alone or not ranks else f"rank {ranks[0]} on {host}"
    number = 2
    while label in taken:
        label = f"{host if not ranks else f'rank {ranks[0]} on {host}'} ({number})"
        number += 1
    return HostFacts(label, host, ranks, facts, *clock)


def _with_names(targets: Sequence[Target], all_facts: Sequence[HostFacts], pool: ThreadPoolExecutor) -> list[HostFacts]:
    """Every target looks up every host's own name."""
    names = list(dict.fromkeys(str(host_facts.section("names").get("own") or "") for host_facts in all_facts))
    names = [name for name in names if name]

    def look_up(target: Target) -> Mapping[str, Any]:
        try:
            return target.ask("resolve", {"names": names}, 4.0)[0]
        except (AgentError, LookupError):
            return {}

    found = pool.map(look_up, targets)
    return [
        HostFacts(one.label, one.host, one.ranks, one.facts, one.clock_ahead, one.clock_error, resolved)
        for one, resolved in zip(all_facts, found, strict=True)
    ]


def judge_facts(all_facts: Sequence[HostFacts], options: CheckOptions) -> tuple[list[CheckFact], list[Unchecked]]:
    """Every comparison and every lint."""
    check_facts: list[CheckFact] = []
    unchecked: list[Unchecked] = []
    for module in _comparisons():
        for found in module.examine(all_facts, options):
            if isinstance(found, CheckFact):
                check_facts.append(_as_option(found, options))
            else:
                unchecked.append(found)
    return check_facts, unchecked


def _as_option(one: CheckFact, options: CheckOptions) -> CheckFact:
    """A variable that stands for an option of the launch command under the option's own name, which is what to change."""
    option = "--" + str(one.fact.fields.get("variable", "")).removeprefix("PET_").lower().replace("_", "-")
    if not any(option[2:] in line.options for line in (options.launch, *options.launches.values())):
        return one
    return replace(one, fact=replace(one.fact, fields={**one.fact.fields, "variable": option}))


def _comparisons() -> list[Comparison]:
    return [*_modules(probes), *_modules(lint)]


def _modules(package: ModuleType) -> list[Comparison]:
    names = sorted(found.name for found in iter_modules(package.__path__))
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    return [cast(Comparison, module) for module in modules if hasattr(module, "examine")]


def probe_network_of(targets: Sequence[Target], all_facts: Sequence[HostFacts], options: CheckOptions) -> NetworkResult:
    """What the network between these targets shows; nothing where there is none to probe."""
    from phalanx.preflight.network import NetworkResult, probe_network  # loaded only when there are packets to send

    if not options.network or len(targets) < 2:
        return NetworkResult()
    asked = NetworkOptions(options.timeout, options.large, store_of(all_facts), options.say, options.libraries)
    return probe_network(targets, {one.label: one for one in all_facts}, asked)


def store_of(all_facts: Sequence[HostFacts]) -> tuple[str, int] | None:
    """Where the ranks would meet, by what most of them are told."""
    told = [(place.address, place.number) for one in all_facts if (place := one.place) is not None and place.number]
    return max(set(told), key=told.count) if told else None


def make_report(
    check_facts: Sequence[CheckFact],
    all_facts: Sequence[HostFacts],
    unchecked: Sequence[Unchecked],
    calls: int = 0,
    measured: int = 0,
) -> Report:
    """The report of the contract."""
    hosts: dict[str, list[int]] = {}
    for host_facts in all_facts:
        hosts.setdefault(host_facts.host, []).extend(host_facts.ranks)
    ranks = {rank: host_facts.host for host_facts in all_facts for rank in host_facts.ranks}
    sizes = [int(size) for one in all_facts if (size := one.variable("WORLD_SIZE") or "").isdigit()]
    world = World(
        size=max(set(sizes), key=sizes.count) if sizes else None,
        launcher=None,
        hosts=tuple(Host(name, tuple(sorted(set(found)))) for name, found in hosts.items()),
        ranks=tuple(Rank(number, host) for number, host in sorted(ranks.items())),
    )
    by_label = {host_facts.label: host_facts for host_facts in all_facts}
    findings = findings_of(check_facts, by_label)
    kept = tuple(dict.fromkeys(unchecked))
    report = Report(world, tuple(findings), kept, tuple(host_facts.label for host_facts in all_facts))
    return replace(report, scope=coverage_of(all_facts, len(_comparisons()), calls, measured))
