"""Judges what is left of the table of pairs when whole hosts are explained: single pairs, single directions, and a network in two parts."""

from __future__ import annotations

from phalanx.check.network.blocked import Pair, Table
from phalanx.check.network.survey import Survey
from phalanx.check.network.talks import Called
from phalanx.check.network.words import done_to, icmp_words, places, usual_outcome
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness


def judge_parts(table: Table) -> list[Reading]:
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
    text = f"check: the network is in {len(parts)} parts ({groups}): calls across, to {places(calls)}, are {done_to(usual_outcome(calls))}"
    smaller = min((sorted(part) for part in parts), key=len)
    table.explain(crossing)
    return [Reading(text, (), table.label(*table.numbers), {"parts": groups, "smaller": table.name(smaller)})]


def _components(table: Table) -> list[set[int]]:
    parts: list[set[int]] = []
    for number in table.numbers:
        linked = [part for part in parts if any(_linked(table, number, other) for other in part)]
        joined = {number}.union(*linked)
        parts = [part for part in parts if part not in linked] + [joined]
    return parts


def _linked(table: Table, one: int, other: int) -> bool:
    return any((call := table.calls.get(pair)) is not None and call.answered for pair in ((one, other), (other, one)))


def judge_pairs(table: Table) -> list[Reading]:
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
        values = {"one": label, "other": other, "how": done_to(call.outcome)}
        said = icmp_words([call])
        if back in table.lost:
            both = [call, table.lost[back]]
            text = f"check: {label} and {other} do not reach each other, though both reach others: {places(both)} {done_to(usual_outcome(both))}"
        else:
            text = f"check: calls from {label} to {other} are {done_to(call.outcome)} ({places([call])}), from {other} to {label} they are answered"
            if call.source == target:  # the request came through, the answer did not
                text = f"check: what {label} sends to {other} is dropped: calls from {other} to {places([call])} arrive, the answers do not"
        found.append(Reading(text + (f" ({said})" if said else ""), (label, other), (), values))
    return found


def judge_peers(survey: Survey, witnesses: dict[str, Witness]) -> tuple[list[Reading], frozenset[int]]:
    """Addresses at which somebody else answers than the one who has them; whom that concerns. Addresses given twice are told by the facts."""
    found = []
    concerned: set[int] = set()
    owners: dict[str, list[int]] = {}
    for node in survey.nodes:
        for address in node.addresses:
            owners.setdefault(address, []).append(node.number)
    for node in survey.nodes:  # frames of two hosts with one hardware address go now to the one, now to the other
        facts = witnesses[node.label].interfaces.get(node.interface, {}) if node.label in witnesses else {}
        owners.setdefault(str(facts.get("mac") or node.label), []).append(node.number)
    twice = {number for numbers in owners.values() if len(numbers) > 1 for number in numbers}
    labels = {node.label.replace(" ", "_"): node for node in survey.nodes}
    for pair, one in survey.mesh().items():
        wanted = survey.nodes[pair[1]]
        if not one.answered or one.peer is None or one.peer == wanted.label or pair[1] in twice:
            continue
        who = labels.get(one.peer.replace(" ", "_"))
        said = f"{who.label} answers" if who is not None else f"{one.peer}, which is not of this job, answers"
        text = f"check: {survey.nodes[pair[0]].label} calls {wanted.label} at {one.ip}, and {said}"
        found.append(
            Reading(text, (wanted.label,), (survey.nodes[pair[0]].label,), {"address": one.ip, "answering": one.peer})
        )
        concerned.add(pair[1])
    return found, frozenset(concerned | twice)


def judge_port_ranges(survey: Survey, table: Table) -> list[Reading]:
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
        text = f"check: high ports of {node.label} are {how}: {table.name({one.source for one in shut})} called {places(shut)}, while port {shown} is answered"
        low, high = survey.listening[node.number].get("range", (32768, 60999))
        values = {
            "host": node.label,
            "how": how,
            "open": shown,
            "ports": f"{low}-{high}",
            "address": node.address,
            "luck": "",
            "subnet": node.subnet,
        }
        found.append(Reading(text, (node.label,), table.label(*{one.source for one in shut}), values))
    return found
