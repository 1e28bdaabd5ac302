"""Judges who does not reach whom: the shape of what fails in the table of all pairs tells where it is blocked.

For each call that got no answer it is known whether the request arrived (it is then half open on the other side). So what is lost is known
by direction: "what a sends does not arrive at b". A column of it is a firewall on what comes in, a row one on what goes out, a single cell a path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from phalanx.check.network.nodes import Node, family_of
from phalanx.check.network.survey import Survey
from phalanx.check.network.talks import Called
from phalanx.check.network.words import done_to, icmp_words, named, places, usual_outcome
from phalanx.check.reading import Reading

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
        """These need no other reading."""
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
        """Labels, as a reading wants them."""
        return tuple(self.labels[number] for number in numbers)


def make_table(survey: Survey, skip: frozenset[int] = frozenset()) -> Table:
    """The calls among nodes that are not explained otherwise."""
    calls = {pair: one for pair, one in survey.mesh().items() if not skip & set(pair) and one.outcome != "local"}
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


def judge_translated(table: Table) -> list[Reading]:
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
        text = (
            f"check: {table.labels[number]} is behind address translation: it calls from {changed[0].local}, "
            f"{table.name(one.target for one in changed)} see {changed[0].saw}, "
            f"and calls from {table.name(others)} to it are {done_to(outcome)}"
        )
        values = {"own": str(changed[0].local), "outer": str(changed[0].saw)}
        found.append(Reading(text, table.label(number), table.label(*sorted(others)), values))
        table.explain_host(number)
    return found


def judge_routes(table: Table) -> list[Reading]:
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
        values = {"address": first.ip, "family": str(family), "source": node.address}
        if not node.has_family(family):
            has = f"only {', '.join(node.addresses)}" if node.addresses else "none"
            text = (
                f"check: {node.label} has no IPv{family} address ({has}), but {table.name(others)} "
                f"would be called by IPv{family}, at {places(lost.values())}"
            )
        else:
            text = f"check: {node.label} has no route to {table.name(others)}: {places(lost.values())}"
        found.append(Reading(text, table.label(number), table.label(*others), values))
        # Without a way there, answers to calls from there do not get back either.
        table.explain([*lost, *((pair[1], pair[0]) for pair in lost)])
    return found


def judge_interfaces(table: Table) -> list[Reading]:
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
    why = f" ({node.pinned})" if node.pinned else ""
    text = (
        f"check: the addresses of {node.interface}{why} do not connect the hosts: calls to {table.name(targets)} at "
        f"{places(bad.values())} are {done_to(usual_outcome(bad.values()))}, those to {places([better])} on "
        f"{node.interface_of(better.ip)} are answered"
    )
    values = {"interface": node.interface, "better": node.interface_of(better.ip)}
    reading = Reading(text, table.label(*targets), (), values)
    table.explain([pair for pair in table.left if pair[1] in targets])
    return [reading]


def judge_columns(table: Table) -> list[Reading]:
    """Hosts that nobody reaches, that reach nobody, or both."""
    found: list[Reading] = []
    numbers = table.numbers
    if len(numbers) < 2 or not table.lost:
        return found
    every = {(one, other) for one in numbers for other in numbers if one != other}
    if every <= set(table.lost) and len(numbers) > 2:
        found.append(_nobody(table))
        table.explain(every)
        return found
    for number in numbers:
        others = [other for other in numbers if other != number]
        arriving = [(other, number) for other in others]
        leaving = [(number, other) for other in others]
        came, went = all(pair in table.lost for pair in arriving), all(pair in table.lost for pair in leaving)
        if len(numbers) == 2:
            if came and not went:
                found.append(_of_two(table, number, others[0]))
                table.explain_host(number)
            elif came and went:
                found.append(_apart(table, (number,), others))
                table.explain_host(number)
        elif came and went:
            found.append(_apart(table, (number,), others))
            table.explain_host(number)
        elif came:
            found.append(_inbound(table, number, arriving))
            table.explain_host(number)
        elif went:
            found.append(_outbound(table, number, leaving))
            table.explain_host(number)
    return found


def _nobody(table: Table) -> Reading:
    calls = list(table.lost.values())
    outcome = usual_outcome(calls)
    text = f"check: no host reaches another: calls to {places(calls)} are {done_to(outcome)}"
    said = icmp_words(calls)
    return Reading(text + (f"; {said}" if said else ""), table.label(*table.numbers), (), {"how": done_to(outcome)})


def _inbound(table: Table, number: int, pairs: Sequence[Pair]) -> Reading:
    calls = [table.lost[pair] for pair in pairs]
    others = sorted(pair[0] for pair in pairs)
    label = table.labels[number]
    outcome = usual_outcome(calls)
    shut_ports = {one.port for one in _other_ports(table.survey, number) if one.outcome == "silent"}
    open_ports = sorted({one.port for one in _other_ports(table.survey, number) if one.answered} - shut_ports)
    to_it = [one for one in calls if one.target == number]  # of the others only the answers were lost
    shut = [*(to_it or calls), *(one for one in _other_ports(table.survey, number) if not one.answered)]
    said = icmp_words(shut)
    luck = _luck(table, number, others)
    node = table.survey.nodes[number]
    values = {"host": label, "address": node.address, "how": done_to(outcome), "luck": luck, "subnet": node.subnet}
    values |= _sure(node, "input")
    if open_ports:
        shown = ", ".join(str(port) for port in open_ports)
        text = (
            f"check: high ports of {label} are {done_to(outcome)}: {table.name(others)} called {places(shut)}, "
            f"while port {shown} is answered"
        )
        values |= {"open": shown, "ports": "{}-{}".format(*table.survey.listening[number].get("range", (32768, 60999)))}
    else:
        text = f"check: what comes in to {label} is {done_to(outcome)}: {table.name(others)} called {places(shut)}"
    text += f" ({said})" if said else ""
    text += f". {luck}" if luck else ""
    return Reading(text, (label,), table.label(*others), values, _rules(node, "input"))


def _sure(node: Node, hook: str) -> dict[str, str]:
    """Packets that vanish and a rule that can be read make it certain."""
    return {"confidence": "confirmed"} if node.filters(hook) else {}


def _rules(node: Node, hook: str) -> tuple[tuple[str, str], ...]:
    """What its own firewall says, as evidence."""
    return tuple((node.label, f"its firewall: {rule}") for rule in node.filters(hook)[:3])


def _of_two(table: Table, number: int, other: int) -> Reading:
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


def _luck(table: Table, number: int, others: Sequence[int]) -> str:
    """With Gloo the higher address calls the lower, so what comes in to the highest is never used."""
    nodes = table.survey.nodes
    if all(_higher(nodes[number], nodes[other]) for other in others):
        return f"With Gloo the higher address calls the lower, so {table.labels[number]} may work by luck"
    return ""


def _higher(one: Node, other: Node) -> bool:
    mine, theirs = ipaddress.ip_address(one.address), ipaddress.ip_address(other.address)
    return mine.version == theirs.version and int(mine) > int(theirs)


def _outbound(table: Table, number: int, pairs: Sequence[Pair]) -> Reading:
    calls = [table.lost[pair] for pair in pairs]
    others = sorted(pair[1] for pair in pairs)
    label = table.labels[number]
    node = table.survey.nodes[number]
    own = [one for one in calls if one.source == number and one.outcome == "no-neighbour"]
    taken = str((own[0].route or {}).get("interface") or "") if own else ""
    if taken and taken != node.interface:
        text = f"check: {label} sends to {table.name(others)} on {taken}, where nobody answers, while its address {node.address} is on {node.interface}"
        values = {"wrong": taken, "interface": node.interface, "subnet": node.subnet, "address": node.address}
        return Reading(text, (label,), table.label(*others), values)
    how = done_to(usual_outcome(calls))
    text = f"check: what goes out of {label} is {how}: it called {places(calls)}"
    text += f", which {table.name(others)} call from each other" if len(others) > 1 else ""
    said = icmp_words(calls)
    values = {"host": label, "how": how, "subnet": table.survey.nodes[number].subnet}
    values |= _sure(table.survey.nodes[number], "output")
    text += f" ({said})" if said else ""
    return Reading(text, (label,), table.label(*others), values, _rules(table.survey.nodes[number], "output"))


def _apart(table: Table, lonely: tuple[int, ...], others: Sequence[int]) -> Reading:
    """Neither direction works. An answer that says no comes from a firewall; silence may be anything."""
    label = table.name(lonely)
    arriving = [table.lost[(other, one)] for one in lonely for other in others]
    outcome = usual_outcome(arriving)
    if outcome in ("refused", "rejected"):
        return _inbound(table, lonely[0], [(other, lonely[0]) for other in others])
    node = table.survey.nodes[lonely[0]]
    text = (
        f"check: {label} and {table.name(others)} do not reach each other: calls to {places(arriving)} "
        f"and back are {done_to(outcome)}"
    )
    accused = table.label(*lonely) if len(others) > 1 else table.label(*lonely, *others)
    values = {"host": label, "how": done_to(outcome), "interface": node.interface, "address": node.address}
    return Reading(text, accused, table.label(*others), values)
