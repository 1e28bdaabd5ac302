"""Judges hosts that nobody reaches, that reach nobody, or both: whole columns and rows of the table of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.network.blocked import Pair, Table
from phalanx.preflight.network.nodes import Node
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Called
from phalanx.preflight.network.words import done_to, icmp_words, places, usual_outcome

_TAKEN = ("mute", "closed", "foreign")  # something answers in the place of every host that is called


def judge_columns(table: Table) -> list[CheckFact]:
    """Hosts that nobody reaches, that reach nobody, or both."""
    found: list[CheckFact] = []
    numbers = table.numbers
    if len(numbers) < 2 or not table.lost:
        return found
    found += _high_ports(table)
    if not table.lost:
        return found
    every = {(one, other) for one in numbers for other in numbers if one != other}
    if every <= set(table.lost) and len(numbers) > 2:
        found.append(_nobody(table))
        table.explain(every)
        return found
    if len(numbers) == 2:
        found.append(_of_both(table, *numbers))
        table.explain_host(numbers[0])
        return found
    chosen = _closed_hosts(set(table.lost), numbers)
    for number, came, went in chosen:  # made before any of it is explained away: two closed hosts share a pair
        others = [other for other in numbers if other != number]
        if came and went:
            found.append(_apart(table, (number,), others))
        elif came:
            found.append(_inbound(table, number, [(other, number) for other in others]))
        else:
            found.append(_outbound(table, number, [(number, other) for other in others]))
    for number, _, _ in chosen:
        table.explain_host(number)
    return found


def _high_ports(table: Table) -> list[CheckFact]:
    """Hosts that nobody reaches at the port which the kernel chose, while the store's is answered: one finding for all of them."""
    closed = []
    for number in table.numbers:
        arriving = {(other, number) for other in table.numbers if other != number}
        if arriving <= set(table.lost) and _open_ports(table.survey, number):
            closed.append(number)
    if not closed:
        return []
    pairs = [pair for pair in table.lost if pair[1] in closed]
    calls = [table.lost[pair] for pair in pairs if table.lost[pair].target == pair[1]] or [table.lost[p] for p in pairs]
    others = sorted({pair[0] for pair in pairs})
    nodes = [table.survey.nodes[number] for number in closed]
    low, high = table.survey.listening[closed[0]].get("range", (32768, 60999))
    fact = observe(
        "high-ports-blocked",
        table.label(*closed),
        table.label(*(other for other in others if other not in closed)),
        how=done_to(usual_outcome(calls)),
        others=table.name(others),
        places=places(calls),
        open=", ".join(str(port) for port in _open_ports(table.survey, closed[0])),
        ports=f"{low}:{high}",
        subnet=nodes[0].subnet,
        icmp=icmp_words(calls) or None,
        evidence=tuple(row for node in nodes for row in _rules(node, "input"))[:6],
        confidence="confirmed" if all(node.filters("input") for node in nodes) else "",
    )
    table.explain(pairs)
    return [fact]


def _open_ports(survey: Survey, number: int) -> list[int]:
    shut = {one.port for one in _other_ports(survey, number) if one.outcome == "silent"}
    return sorted({one.port for one in _other_ports(survey, number) if one.answered} - shut)


def _closed_hosts(lost: set[Pair], numbers: Sequence[int]) -> list[tuple[int, bool, bool]]:
    """Hosts whose whole column or row is lost, whether that is what comes in and what goes out; as few as explain most of it, what comes in first."""
    candidates = []
    for number in numbers:
        arriving = {(other, number) for other in numbers if other != number}
        leaving = {(pair[1], pair[0]) for pair in arriving}
        came, went = arriving <= lost, leaving <= lost
        if came or went:
            candidates.append((number, came, went, (arriving if came else set()) | (leaving if went else set())))
    found = []
    left = set(lost)
    while candidates:
        best = max(candidates, key=lambda one: (len(one[3] & left), one[1], -one[0]))
        if 2 * len(best[3] & left) <= len(best[3]):
            break  # what it would explain is explained better by others
        candidates.remove(best)
        left -= best[3]
        found.append(best[:3])
    return sorted(found)


def _of_both(table: Table, one: int, other: int) -> CheckFact:
    """Between two hosts: both directions, or one."""
    if (one, other) in table.lost and (other, one) in table.lost:
        return _apart(table, (one,), [other])
    return _of_two(table, other, one) if (one, other) in table.lost else _of_two(table, one, other)


def _nobody(table: Table) -> CheckFact:
    calls = list(table.lost.values())
    outcome = usual_outcome(calls)
    said = icmp_words(calls) or None
    accused = table.label(*table.numbers)
    return observe("no-host-reaches-another", accused, places=places(calls), how=done_to(outcome), icmp=said)


def _inbound(table: Table, number: int, pairs: Sequence[Pair]) -> CheckFact:
    calls = [table.lost[pair] for pair in pairs]
    others = sorted(pair[0] for pair in pairs)
    label = table.labels[number]
    outcome = usual_outcome(calls)
    open_ports = _open_ports(table.survey, number)
    to_it = [one for one in calls if one.target == number]  # of the others only the answers were lost
    shut = [*(to_it or calls), *(one for one in _other_ports(table.survey, number) if not one.answered)]
    node = table.survey.nodes[number]
    luck = False
    fields: dict[str, Any] = {
        "how": done_to(outcome),
        "others": table.name(others),
        "places": places(shut),
        "icmp": icmp_words(shut) or None,
        "subnet": node.subnet,
    }
    if open_ports:
        name = "high-ports-blocked"
        fields["open"] = ", ".join(str(port) for port in open_ports)
        fields["ports"] = "{}:{}".format(*table.survey.listening[number].get("range", (32768, 60999)))
    else:
        name = "incoming-blocked"
        lonely = label if outcome == "no-neighbour" else None
        luck = table.is_never_called(number, others)
        fields |= {"outcome": outcome, "lonely": lonely, "luck": luck}
    return observe(
        name,
        (label,),
        table.label(*others),
        evidence=_rules(node, "input"),
        confidence=_sure(node, "input"),
        by_luck=luck,
        **fields,
    )


def _sure(node: Node, hook: str) -> str:
    """Packets that vanish and a rule that can be read make it certain."""
    return "confirmed" if node.filters(hook) else ""


def _rules(node: Node, hook: str) -> tuple[tuple[str, str], ...]:
    """What its own firewall says, as evidence."""
    return tuple((node.label, f"its firewall: {rule}") for rule in node.filters(hook)[:3])


def _of_two(table: Table, number: int, other: int) -> CheckFact:
    """One direction between two hosts: what comes in to one or what goes out of the other; readable rules decide, else the commoner."""
    pair = (other, number)
    here, there = table.survey.nodes[number], table.survey.nodes[other]
    if there.filters("output") and not here.filters("input"):
        return _outbound(table, other, [pair])
    return _inbound(table, number, [pair])


def _other_ports(survey: Survey, number: int) -> list[Called]:
    store = survey.nodes[number].stores
    return [
        one
        for one in survey.calls
        if (one.kind == "given" and one.target == number)
        or (store and one.source != number and one.kind == "store" and one.peer == survey.nodes[number].label)
    ]


def _outbound(table: Table, number: int, pairs: Sequence[Pair]) -> CheckFact:
    calls = [table.lost[pair] for pair in pairs]
    others = sorted(pair[1] for pair in pairs)
    label = table.labels[number]
    node = table.survey.nodes[number]
    own = [one for one in calls if one.source == number and one.outcome == "no-neighbour"]
    taken = str((own[0].route or {}).get("interface") or "") if own else ""
    if taken and taken != node.interface:
        return observe(
            "sends-on-another-interface",
            (label,),
            table.label(*others),
            others=table.name(others),
            wrong=taken,
            interface=node.interface,
            subnet=node.subnet,
            address=node.address,
        )
    return observe(
        "outgoing-redirected" if usual_outcome(calls) in _TAKEN else "outgoing-blocked",
        (label,),
        table.label(*others),
        how=done_to(usual_outcome(calls)),
        places=places(calls),
        others=table.name(others),
        mutual=len(others) > 1,
        icmp=icmp_words(calls) or None,
        subnet=node.subnet,
        evidence=_rules(node, "output"),
        confidence=_sure(node, "output"),
    )


def _apart(table: Table, lonely: tuple[int, ...], others: Sequence[int]) -> CheckFact:
    """Neither direction works. An answer that says no comes from a firewall; silence may be anything."""
    label = table.name(lonely)
    arriving = [table.lost[(other, one)] for one in lonely for other in others]
    outcome = usual_outcome(arriving)
    if outcome in ("refused", "rejected"):
        return _inbound(table, lonely[0], [(other, lonely[0]) for other in others])
    node = table.survey.nodes[lonely[0]]
    accused = table.label(*lonely) if len(others) > 1 else table.label(*lonely, *others)
    return observe(
        "host-cut-off",
        accused,
        table.label(*others),
        lonely=label,
        others=table.name(others),
        places=places(arriving),
        how=done_to(outcome),
        interface=node.interface,
        address=node.address,
    )
