"""The network between the targets: who reaches whom, with what sizes, how fast, and what stands in the way."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from phalanx.model import Unchecked
from phalanx.preflight.agreement import uses_only_gloo
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.network import survey as phases
from phalanx.preflight.network.apart import judge_pairs, judge_parts, judge_peers, judge_port_ranges
from phalanx.preflight.network.blocked import judge_interfaces, judge_routes, judge_translated, make_table
from phalanx.preflight.network.columns import judge_columns
from phalanx.preflight.network.detours import judge_detours
from phalanx.preflight.network.flows import judge_flows
from phalanx.preflight.network.nodes import find_nodes
from phalanx.preflight.network.quality import judge_idle, judge_sizes, judge_speed, suspects
from phalanx.preflight.network.store import judge_store, proven_by, store_targets
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Talk
from phalanx.preflight.network.tasks import find_tasks, judge_tasks
from phalanx.preflight.options import NetworkOptions
from phalanx.preflight.targets import Target
from phalanx.preflight.unreached import silent_target

__all__ = ["NetworkResult", "judge", "probe_network", "take_survey"]


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """What the probes found, what could not be probed, what the calls prove, and how much was tried."""

    facts: list[CheckFact] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    proven: frozenset[str] = frozenset()
    calls: int = 0
    measured: int = 0


def probe_network(
    targets: Sequence[Target], all_facts: Mapping[str, HostFacts], options: NetworkOptions
) -> NetworkResult:
    """Probe and judge. Only sockets that the check itself opens are used."""
    nodes = find_nodes(all_facts)
    if len(nodes) < 2:
        needed = Unchecked(
            "the network between the targets", "hosts with addresses that others can call", essential=True
        )
        return NetworkResult(unchecked=[needed] if len({one.network for one in all_facts.values()}) > 1 else [])
    by_label = {target.label: target for target in targets}
    talk = Talk([by_label[node.label] for node in nodes], secrets.token_hex(8))
    seen = Survey(nodes, options.store[1] if options.store else None, find_tasks(nodes, all_facts))
    seen.only_gloo = uses_only_gloo(all_facts.values(), options.libraries)
    try:
        take_survey(talk, seen, all_facts, options)
    finally:
        phases.close(talk, seen)
    silent = [silent_target(nodes[number].label, why) for number, why in sorted(talk.silent.items())]
    found = judge(seen, all_facts) + silent
    return NetworkResult(found, not_called(seen), proven_by(seen), len(seen.calls), len(seen.speeds))


def take_survey(talk: Talk, seen: Survey, all_facts: Mapping[str, HostFacts], options: NetworkOptions) -> None:
    """All phases, each only as far as it makes sense."""
    options.say(f"calling between {len(seen.nodes)} hosts")
    phases.listen(talk, seen)
    since = time.monotonic()  # what answers has done so at once, and is idle from then on
    phases.call_all(talk, seen, phases.plan_calls(seen, store_targets(seen, all_facts)), options.timeout)
    if any(not one.answered for one in seen.mesh().values()):
        phases.ask_ways(talk, seen)
    if options.large:
        if any(one.answered and one.large != "ok" for one in seen.mesh().values()):
            options.say("finding the size that passes")
            phases.find_sizes(talk, seen, options.timeout)
        options.say("measuring latency, loss and bandwidth")
        phases.measure(talk, seen, suspects)
    phases.wake_idle(talk, seen, since)


def judge(seen: Survey, all_facts: Mapping[str, HostFacts]) -> list[CheckFact]:
    """What the survey tells, the most telling first; what one fact explains is not told again by another."""
    found, concerned = judge_peers(seen, dict(all_facts))
    table = make_table(seen, concerned)
    found += judge_flows(seen, table)
    found += judge_translated(table)
    found += judge_interfaces(table)
    found += judge_routes(table)
    found += judge_detours(table)
    columns = judge_columns(table)
    found += columns
    closed = {label for check_fact in columns for label in check_fact.accused}
    ranges = [check_fact for check_fact in judge_port_ranges(seen, table) if check_fact.accused[0] not in closed]
    found += ranges
    partly = {node.number for node in seen.nodes for check_fact in ranges if node.label in check_fact.accused}
    table.explain([pair for pair in table.lost if pair[1] in partly])
    found += judge_parts(table)
    found += judge_pairs(table)
    accused = frozenset(label for check_fact in found for label in check_fact.accused)
    found += judge_store(seen, table, concerned, accused)
    found += judge_tasks(seen, table)
    closed |= {label for check_fact in found for label in check_fact.accused}
    found += judge_sizes(seen, concerned, frozenset(node.number for node in seen.nodes if node.label in closed))
    found += judge_speed(seen, concerned)
    found += judge_idle(seen, concerned)
    return found


def not_called(seen: Survey) -> list[Unchecked]:
    """Calls that a host could not make at all."""
    unable = sorted({seen.nodes[one.source].label for one in seen.calls if one.outcome == "local"})
    needs = "more open files (ulimit -n) or free ports there"
    found = [Unchecked(f"calls from {label}", needs, essential=True) for label in unable]
    busy = seen.busy()
    if busy and seen.speeds:
        first = min(busy)
        more = f" and {len(busy) - 1} more" if len(busy) > 1 else ""
        found.append(
            Unchecked(
                "the bandwidth of busy hosts, beside that of the others",
                f"less load on {seen.nodes[first].label}{more} ({busy[first]})",
            )
        )
    return found
