"""How outcomes of calls and groups of hosts are said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from phalanx.model.ranks import name_all
from phalanx.preflight.network.talks import Called

# What happened to a call, as a participle.
_DONE = {
    "silent": "dropped",
    "no-neighbour": "not answered by any host of the link",
    "refused": "reset",
    "rejected": "rejected",
    "reset": "cut",
    "mute": "accepted but not answered",
    "closed": "accepted and closed",
    "foreign": "answered by something else",
    "no-route": "without a route",
}
_ICMP = {
    0: "network unreachable",
    1: "host unreachable",
    3: "port unreachable",
    9: "network prohibited",
    10: "host prohibited",
    13: "prohibited by a filter",
}
_ICMP6 = {
    0: "no route",
    1: "prohibited",
    3: "address unreachable",
    4: "port unreachable",
    5: "prohibited",
    6: "rejected",
}


def done_to(outcome: str) -> str:
    """`dropped`, `rejected`, `reset`, …"""
    return _DONE.get(outcome, outcome)


def usual_outcome(calls: Iterable[Called]) -> str:
    """The outcome of most of these calls."""
    counted = Counter(one.outcome for one in calls)
    return counted.most_common(1)[0][0] if counted else "silent"


def icmp_words(calls: Iterable[Called]) -> str:
    """Who rejected, and with what words; empty where no ICMP message was seen."""
    for one in calls:
        if one.icmp:
            names = _ICMP6 if one.icmp.get("v6") else _ICMP
            code = int(one.icmp.get("code", -1))
            return f"{one.icmp.get('from') or 'a host'} says: {names.get(code, f'ICMP code {code}')}"
    return ""


def places(calls: Iterable[Called]) -> str:
    """`10.0.0.2:29500, 10.0.0.2:41233`, the addresses and ports that were called."""
    found = list(dict.fromkeys(f"{_bracketed(one.ip)}:{one.port}" for one in calls))
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return ", ".join(found[:4]) + more


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def common_host(bad: Iterable[tuple[int, int]], good: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The host that all bad pairs share and good pairs do not; else both ends of a single pair; nobody if none stands out."""
    pairs = {frozenset(pair) for pair in bad}
    if not pairs:
        return ()
    whole = {frozenset(pair) for pair in good} - pairs
    shared = set.intersection(*(set(pair) for pair in pairs))
    if len(pairs) == 1:
        one, other = sorted(next(iter(pairs)))
        ends = [end for end in (one, other) if not any(end in pair for pair in whole)]
        # An end that has good pairs beside this one is not the only suspect.
        return tuple(ends) if len(ends) == 1 and whole else (one, other)
    clean = {number for pair in whole for number in pair}
    if len(shared) == 1:
        return tuple(shared)
    hosts = {number for pair in pairs for number in pair}
    suspects = hosts - clean
    if suspects and len(suspects) < len(hosts | clean):
        return tuple(sorted(suspects))
    return tuple(sorted(hosts)) if whole else ()


def named(labels: Sequence[str], numbers: Iterable[int]) -> str:
    """Hosts by their labels."""
    return name_all([labels[number] for number in sorted(set(numbers))])


def between(labels: Sequence[str], accused: Iterable[int], rest: Iterable[int]) -> str:
    """`h1 and h0`, `h1 and the others (h0, h2)`: whom a path connects."""
    ends, others = sorted(set(accused)), sorted(set(rest))
    if not ends or not others:
        return named(labels, ends or others)
    if len(others) == 1:
        return named(labels, [*ends, *others])
    return f"{named(labels, ends)} and the others ({', '.join(labels[number] for number in others[:4])}{', …' if len(others) > 4 else ''})"
