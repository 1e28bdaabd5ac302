"""Judges who does not reach whom: the shape of what fails in the table of all pairs tells where it is blocked.

For each call that got no answer it is known whether the request arrived (it is then half open on the other side). So what is lost is known
by direction: "what a sends does not arrive at b". A column of it is a firewall on what comes in, a row one on what goes out, a single cell a path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.network.nodes import family_of
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Called
from phalanx.preflight.network.words import done_to, named, places, usual_outcome

Pair = tuple[int, int]


@dataclass(slots=True)
class Table:
    """All pairs, what failed of them, and what of that is explained already."""

    survey: Survey
    labels: Sequence[str]
    calls: Mapping[Pair, Called]
    left: dict[Pair, Called] = field(default_factory=dict)  # failed and not yet explained
    lost: dict[Pair, Called] = field(default_factory=dict)  # what the first sends does not arrive at the second
    by_luck: set[Pair] = field(
        default_factory=set
    )  # some calls pass and some do not: one that failed tells nothing of its port

    @property
    def numbers(self) -> list[int]:
        """Everybody that calls or is called."""
        return sorted({number for pair in self.calls for number in pair})

    def explain(self, pairs: Iterable[Pair]) -> None:
        """These need no other fact."""
        for pair in list(pairs):
            self.left.pop(pair, None)
            self.lost.pop(pair, None)

    def explain_host(self, number: int) -> None:
        """Nothing more about this host."""
        self.explain([pair for pair in [*self.left, *self.lost] if number in pair])

    def name(self, numbers: Iterable[int]) -> str:
        """Labels."""
        return named(self.labels, numbers)

    def label(self, *numbers: int) -> tuple[str, ...]:
        """Labels, as a fact wants them."""
        return tuple(self.labels[number] for number in numbers)

    def is_never_called(self, number: int, others: Iterable[int]) -> bool:
        """With Gloo the higher address calls the lower, so nobody has to reach the highest; other libraries do not go by addresses."""
        nodes = self.survey.nodes
        mine = ipaddress.ip_address(nodes[number].address)
        theirs = [ipaddress.ip_address(nodes[other].address) for other in others]
        return self.survey.only_gloo and all(mine.version == one.version and int(mine) > int(one) for one in theirs)


def make_table(survey: Survey, skip: frozenset[int] = frozenset()) -> Table:
    """The calls among nodes that are not explained otherwise."""
    # Hosts ration ICMP messages: of several calls to a port that says no, only some are told so.
    said_no = {(one.source, one.target): one for one in survey.of("flow") if one.outcome == "rejected"}
    calls = {
        pair: said_no.get(pair, one) if one.outcome == "silent" else one
        for pair, one in survey.mesh().items()
        if not skip & set(pair) and one.outcome != "local"
    }
    table = Table(survey, [node.label for node in survey.nodes], calls)
    for pair, one in calls.items():
        if one.answered:
            continue
        table.left[pair] = one
        arrived = one.outcome == "silent" and has_arrived(survey, one, one.target)
        table.lost[(pair[1], pair[0]) if arrived else pair] = one
    return table


def has_arrived(survey: Survey, one: Called, target: int) -> bool:
    """Whether the request came in over there, so that it is the answer that got lost."""
    own = set(survey.nodes[one.source].addresses)
    return any(seen["from"] in own and seen["port"] == one.port for seen in survey.half_open.get(target, ()))


def judge_translated(table: Table) -> list[CheckFact]:
    """Hosts whose address is changed on the way, and that are not reached."""
    found = []
    translated: dict[int, list[Called]] = {}
    for (source, _), one in table.calls.items():
        if one.answered and one.local and one.saw and one.saw != one.local:
            translated.setdefault(source, []).append(one)
    for number, changed in sorted(translated.items()):
        unreached = [pair for pair in table.left if pair[1] == number]
        if not unreached:
            continue
        others = {pair[0] for pair in unreached}
        outcome = usual_outcome(table.left[pair] for pair in unreached)
        found.append(
            observe(
                "behind-address-translation",
                table.label(number),
                table.label(*sorted(others)),
                own=str(changed[0].local),
                outer=str(changed[0].saw),
                seers=table.name(one.target for one in changed),
                others=table.name(others),
                how=done_to(outcome),
                by_luck=table.is_never_called(number, others),
            )
        )
        table.explain_host(number)
    return found


def judge_routes(table: Table) -> list[CheckFact]:
    """Hosts that know no way, or lack the family of addresses."""
    found = []
    for number in sorted({pair[0] for pair in table.left}):
        lost = {pair: one for pair, one in table.left.items() if pair[0] == number and one.outcome == "no-route"}
        if not lost:
            continue
        node = table.survey.nodes[number]
        first = next(iter(lost.values()))
        family = family_of(first.ip)
        others = sorted(pair[1] for pair in lost)
        named: dict[str, Any] = {"others": table.name(others), "places": places(lost.values())}
        if not node.has_family(family):
            has = f"only {', '.join(node.addresses)}" if node.addresses else "none"
            fact = observe(
                "address-family-missing", table.label(number), table.label(*others), family=family, has=has, **named
            )
        else:
            fact = observe("no-route-to-host", table.label(number), table.label(*others), address=first.ip, **named)
        found.append(fact)
        # Without a way there, answers to calls from there do not get back either.
        table.explain([*lost, *((pair[1], pair[0]) for pair in lost)])
    return found


def judge_interfaces(table: Table) -> list[CheckFact]:
    """Where the chosen addresses do not connect, and those of another interface do."""
    works: dict[Pair, Called] = {}
    nodes = table.survey.nodes
    for one in table.survey.of("other"):
        node = nodes[one.target]
        if one.answered and node.interface_of(one.ip) != node.interface:
            works.setdefault((one.source, one.target), one)
    bad = {pair: one for pair, one in table.left.items() if pair in works}
    tried = {(one.source, one.target) for one in table.survey.of("other")} & set(table.left)
    if not bad or len(bad) < len(tried):
        return []
    targets = sorted({pair[1] for pair in bad})
    node = nodes[targets[0]]
    better = works[next(pair for pair in bad if pair[1] == targets[0])]
    check_fact = observe(
        "interface-does-not-connect",
        table.label(*targets),
        interface=node.interface,
        pinned=node.pinned or None,
        targets=table.name(targets),
        places=places(bad.values()),
        how=done_to(usual_outcome(bad.values())),
        good=places([better]),
        better=node.interface_of(better.ip),
    )
    table.explain([pair for pair in table.left if pair[1] in targets])
    return [check_fact]
