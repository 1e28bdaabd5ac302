"""Judges the calls to the store, at the very MASTER_ADDR and MASTER_PORT that each host has."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from phalanx.preflight.check_fact import STORE_CALLED, STORE_REACHED, CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.network.blocked import Table, has_arrived
from phalanx.preflight.network.nodes import Node, family_of
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Called
from phalanx.preflight.network.words import done_to, icmp_words, named, places, usual_outcome

_SHUT = ("silent", "refused", "rejected", "no-neighbour", "reset")


def store_targets(survey: Survey, all_facts: Mapping[str, HostFacts]) -> dict[int, tuple[str, int, str]]:
    """What each host would call, by its own variables: rank 0's store, or the launcher's driver, which is not of the job."""
    found = {}
    for node in survey.nodes:
        place = all_facts[node.label].place
        if place is not None and place.number is not None:
            found[node.number] = (place.address, place.number, "driver" if place.is_drivers else "store")
    return found


def judge_store(
    survey: Survey, table: Table, skip: frozenset[int] = frozenset(), accused: frozenset[str] = frozenset()
) -> list[CheckFact]:
    """The store's port alone: what is wrong with the whole host is said by the table of pairs."""
    home = next((node for node in survey.nodes if node.stores), None)
    by_source: dict[int, list[Called]] = {}
    explained = {address for number in skip for address in survey.nodes[number].addresses}
    for one in survey.of("store"):
        # Where two hosts share an address, a connection that the one accepted goes on to the other: no answer is no foreign service.
        if one.source not in skip and one.ip not in explained:
            by_source.setdefault(one.source, []).append(one)
    found = [*_driver(survey), *_foreign(survey, by_source, table), *_first_address(survey, by_source)]
    found += _elsewhere(survey, by_source, home)
    if home is None:
        return found
    shut = []
    for source, calls in sorted(by_source.items()):
        mine = [one for one in calls if one.ip in home.addresses and one.port == survey.port]
        pair = table.calls.get((source, home.number))
        if source == home.number or not mine or any(one.answered for one in mine) or pair is None or not pair.answered:
            continue
        if (source, home.number) in table.by_luck:
            continue
        if mine[0].outcome not in _SHUT or not _listens(survey, home.number, mine[0].ip):
            continue
        if has_arrived(survey, mine[0], home.number):
            found += _answers_lost(survey, mine[0], accused)
        else:
            shut.append(mine[0])
    if shut:
        labels = [node.label for node in survey.nodes]
        how = done_to(usual_outcome(shut))
        others = sorted(one.source for one in shut)
        said = icmp_words(shut)
        rules = tuple((home.label, f"its firewall: {rule}") for rule in home.filters("input")[:3])
        found.append(
            observe(
                "store-port-blocked",
                (home.label,),
                tuple(labels[number] for number in others),
                port=survey.port,
                how=how,
                others=named(labels, others),
                places=places(shut),
                icmp=said or None,
                subnet=home.subnet,
                evidence=rules,
                confidence="confirmed" if rules else "",  # packets that vanish, and a rule that can be read
            )
        )
    return found


def proven_by(survey: Survey) -> frozenset[str]:
    """What the calls to the store settle, whatever the facts look like. Rank 0 too calls the store at the address that is given."""
    calls = survey.of("store")
    peers = {one.peer for one in calls if one.answered and one.peer is not None}
    named = {node.label for node in survey.nodes if node.stores} or peers
    homes = [node for node in survey.nodes if node.label in named]
    if len(homes) != 1 or not _listens(survey, homes[0].number, homes[0].address):
        return frozenset()
    reached = {one.source for one in calls if one.answered and one.peer == homes[0].label}
    everybody = reached == {one.source for one in calls}
    return frozenset([STORE_CALLED, STORE_REACHED] if everybody else [STORE_CALLED])


def _elsewhere(survey: Survey, by_source: Mapping[int, list[Called]], home: Node | None) -> list[CheckFact]:
    """A forwarded address that leads to another host than that of rank 0; addresses of hosts are told by the facts."""
    owned = {address for node in survey.nodes for address in node.addresses}
    found = []
    for source, calls in sorted(by_source.items()):
        wrong = next((one for one in calls if one.answered and one.ip not in owned and not _is_loopback(one.ip)), None)
        if home is not None and wrong is not None and wrong.peer is not None and wrong.peer != home.label:
            caller = survey.nodes[source].label
            found.append(
                observe(
                    "somebody-else-answers",
                    (caller,),
                    (home.label,),
                    caller=caller,
                    wanted="the store",
                    address=wrong.ip,
                    answering=wrong.peer,
                )
            )
    return found


def _driver(survey: Survey) -> list[CheckFact]:
    """The launcher's driver: before the launch nothing listens there, but the host must be there and let calls in."""
    lost = [one for one in survey.of("driver") if one.outcome in ("silent", "no-neighbour", "no-route", "rejected")]
    if not lost:
        return []
    labels = [node.label for node in survey.nodes]
    sources = sorted({one.source for one in lost})
    return [
        observe(
            "horovod-rendezvous-unreachable",
            tuple(labels[number] for number in sources),
            place=places(lost),
            how=done_to(usual_outcome(lost)),
            icmp=icmp_words(lost) or None,
        )
    ]


def _answers_lost(survey: Survey, call: Called, accused: frozenset[str]) -> list[CheckFact]:
    """The request came in at the store, the answer did not get back; nothing new if the caller is known to be closed."""
    home = next(node for node in survey.nodes if node.stores)
    caller = survey.nodes[call.source].label
    if caller in accused:
        return []
    return [
        observe(
            "one-way-blocked",
            (caller,),
            (home.label,),
            one=home.label,
            other=caller,
            answers=True,
            places=places([call]),
        )
    ]


def _listens(survey: Survey, number: int, ip: str) -> bool:
    """Whether the check itself has the store's port there, so that nobody else can."""
    return survey.open_port(number, family_of(ip), survey.port) is not None


def _foreign(survey: Survey, by_source: Mapping[int, list[Called]], table: Table) -> list[CheckFact]:
    """Somebody else's service where the store should be."""
    strange = [one for calls in by_source.values() for one in calls if one.outcome in ("foreign", "mute", "closed")]
    strange = [one for one in strange if not _is_loopback(one.ip)]
    owned = {address: node for node in survey.nodes for address in node.addresses}
    # A port of a target that is in use and says nothing is told by the facts, with its owner.
    strange = [
        one
        for one in strange
        if one.outcome == "foreign" or one.ip not in owned or _listens(survey, owned[one.ip].number, one.ip)
    ]
    # Where a host's every call is answered by something else, it is not the store's host that is at fault.
    strange = [one for one in strange if not _is_taken(table, one, owned.get(one.ip))]
    if not strange:
        return []
    first = max(strange, key=lambda one: bool(one.banner))
    home = owned.get(first.ip)
    labels = [node.label for node in survey.nodes]
    whose = home.label if home is not None else "no host of the job"
    banner = first.banner.strip()
    return [
        observe(
            "foreign-service-at-the-store",
            (home.label,) if home is not None else (),
            tuple(labels[number] for number in sorted({one.source for one in strange})),
            place=places([first]),
            host=whose,
            banner=repr(banner) if banner else None,
            how=None if banner else done_to(first.outcome),
            port=first.port,
        )
    ]


def _is_taken(table: Table, one: Called, home: Node | None) -> bool:
    pair = table.calls.get((one.source, home.number)) if home is not None else None
    return pair is not None and pair.outcome in ("foreign", "mute", "closed")


def _first_address(survey: Survey, by_source: Mapping[int, list[Called]]) -> list[CheckFact]:
    """A name with several addresses, of which those that are tried first are dead."""
    concerned: list[tuple[Called, Called]] = []
    for calls in by_source.values():
        ordered = sorted(calls, key=lambda one: one.order)
        good = next((one for one in ordered if one.answered), None)
        dead = [one for one in ordered if good is not None and one.order < good.order and not one.answered]
        # An address that no host has is told by the facts.
        dead = [one for one in dead if any(one.ip in node.addresses for node in survey.nodes)]
        if good is not None and dead:
            concerned.append((dead[0], good))
    if not concerned:
        return []
    dead_one, good_one = concerned[0]
    labels = [node.label for node in survey.nodes]
    harmed = tuple(labels[one.source] for one, _ in concerned)
    home = next((node.label for node in survey.nodes if node.stores), "")
    return [
        observe(
            "first-address-of-name-dead",
            (home,) if home else (),
            harmed,
            dead=dead_one.ip,
            good=good_one.ip,
            how=done_to(dead_one.outcome),
            others=named(labels, (one.source for one, _ in concerned)),
        )
    ]


def _is_loopback(ip: str) -> bool:
    try:
        return ipaddress.ip_address(ip).is_loopback or ipaddress.ip_address(ip).is_unspecified
    except ValueError:
        return True
