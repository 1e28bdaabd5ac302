"""Judges what is left of the table of pairs when whole hosts are explained: single pairs, single directions, and a network in two parts."""

from __future__ import annotations

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.network.blocked import Pair, Table
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Called
from phalanx.preflight.network.words import done_to, icmp_words, places, usual_outcome


def judge_parts(table: Table) -> list[CheckFact]:
    """Two or more groups of hosts, whole inside and cut off from each other."""
    if not table.lost:
        return []
    parts = _components(table)
    large = [part for part in parts if len(part) > 1]
    if len(large) < 2:
        return []
    crossing = [pair for pair in table.lost if not any(set(pair) <= part for part in parts)]
    calls = [table.lost[pair] for pair in crossing]
    groups = "; ".join(table.name(part) for part in parts)
    smaller = min((sorted(part) for part in parts), key=len)
    table.explain(crossing)
    return [
        observe(
            "network-in-parts",
            (),
            table.label(*table.numbers),
            count=len(parts),
            parts=groups,
            smaller=table.name(smaller),
            places=places(calls),
            how=done_to(usual_outcome(calls)),
        )
    ]


def _components(table: Table) -> list[set[int]]:
    parts: list[set[int]] = []
    for number in table.numbers:
        linked = [part for part in parts if any(_linked(table, number, other) for other in part)]
        joined = {number}.union(*linked)
        parts = [part for part in parts if part not in linked] + [joined]
    return parts


def _linked(table: Table, one: int, other: int) -> bool:
    return any((call := table.calls.get(pair)) is not None and call.answered for pair in ((one, other), (other, one)))


def judge_pairs(table: Table) -> list[CheckFact]:
    """What is left, pair by pair."""
    found = []
    seen: set[Pair] = set()
    for pair, call in sorted(table.lost.items()):
        if pair in seen:
            continue
        source, target = pair
        back = (target, source)
        seen |= {pair, back}
        label, other = table.labels[source], table.labels[target]
        said = icmp_words([call]) or None
        if back in table.lost:
            both = [call, table.lost[back]]
            how = done_to(usual_outcome(both))
            fact = observe(
                "pair-of-hosts-cut-off",
                (label, other),
                one=label,
                other=other,
                address=survey_address(table, target),
                places=places(both),
                how=how,
                icmp=said,
            )
        elif call.source == target:  # the request came through, the answer did not
            fact = observe(
                "one-way-blocked", (label, other), one=label, other=other, answers=True, places=places([call])
            )
        else:
            how = done_to(call.outcome)
            fact = observe(
                "one-way-blocked",
                (label, other),
                one=label,
                other=other,
                calls=True,
                how=how,
                places=places([call]),
                icmp=said,
            )
        found.append(fact)
    return found


def survey_address(table: Table, number: int) -> str:
    """Where a host is called."""
    return table.survey.nodes[number].address


def judge_peers(survey: Survey, all_facts: dict[str, HostFacts]) -> tuple[list[CheckFact], frozenset[int]]:
    """Addresses at which somebody else answers than the one who has them; whom that concerns. Addresses given twice are told by the facts."""
    found = []
    concerned: set[int] = set()
    owners: dict[str, list[int]] = {}
    for node in survey.nodes:
        for address in node.addresses:
            owners.setdefault(address, []).append(node.number)
    for node in survey.nodes:  # frames of two hosts with one hardware address go now to the one, now to the other
        facts = all_facts[node.label].interfaces.get(node.interface, {}) if node.label in all_facts else {}
        owners.setdefault(str(facts.get("mac") or node.label), []).append(node.number)
    twice = {number for numbers in owners.values() if len(numbers) > 1 for number in numbers}
    labels = {node.label.replace(" ", "_"): node for node in survey.nodes}
    for pair, one in survey.mesh().items():
        wanted = survey.nodes[pair[1]]
        if not one.answered or one.peer is None or one.peer == wanted.label or pair[1] in twice:
            continue
        who = labels.get(one.peer.replace(" ", "_"))
        caller = survey.nodes[pair[0]].label
        found.append(
            observe(
                "somebody-else-answers",
                (wanted.label,),
                (caller,),
                caller=caller,
                wanted=wanted.label,
                address=one.ip,
                answering=who.label if who is not None else one.peer,
                stranger=who is None,
            )
        )
        concerned.add(pair[1])
    return found, frozenset(concerned | twice)


def judge_port_ranges(survey: Survey, table: Table) -> list[CheckFact]:
    """High ports of which some are open and some are not."""
    found = []
    by_target: dict[int, list[Called]] = {}
    for one in survey.of("spread"):
        if (one.source, one.target) in table.by_luck:
            continue
        by_target.setdefault(one.target, []).append(one)
    for number, spread in sorted(by_target.items()):
        if all(one.answered for one in spread):
            continue
        node = survey.nodes[number]
        mesh = [one for (_, target), one in table.calls.items() if target == node.number]
        sources = {one.source for one in mesh if one.answered}
        shut = [one for one in spread if not one.answered and one.outcome != "local" and one.source in sources]
        ports = sorted({one.port for one in shut})
        if not shut or any(one.answered for one in spread if one.port in ports):
            continue
        good = sorted({one.port for one in [*mesh, *spread] if one.answered})
        how = done_to(usual_outcome(shut))
        shown = ", ".join(str(port) for port in good[:4])
        low, high = survey.listening[node.number].get("range", (32768, 60999))
        sources = {one.source for one in shut}
        found.append(
            observe(
                "high-ports-blocked",
                (node.label,),
                table.label(*sources),
                how=how,
                others=table.name(sources),
                places=places(shut),
                open=shown,
                ports=f"{low}:{high}",
                subnet=node.subnet,
            )
        )
    return found
