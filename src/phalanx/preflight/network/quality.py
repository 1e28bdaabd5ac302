"""Judges paths that work, but badly: large messages that get stuck, loss, latency, bandwidth, connections forgotten when idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.network.nodes import family_of
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.words import between, common_host, named

Pair = tuple[int, int]
_LOST_SHARE, _LOST_LEAST = 0.004, 3
_SLOW_US, _SLOW_TIMES = 5_000, 5
_NARROW_RATE, _NARROW_TIMES, _NARROW_BELOW = (
    12.5e6,
    8,
    60e6,
)  # bytes a second: 100 Mbit/s; and by how much slower than most
_NARROW_BUSY = 4e6
_MOST_AGAIN, _MOST_OF_EACH = 64, 2
_HEADERS = {4: 40, 6: 60}


@dataclass(frozen=True, slots=True)
class Speed:
    """The best figures of a path over all its measurements: a busy host only ever makes them worse."""

    rtt_us: float
    rate: float  # of the slower direction
    lost: int
    sent: int
    stalled: bool


def judge_sizes(
    survey: Survey, skip: frozenset[int] = frozenset(), closed: frozenset[int] = frozenset()
) -> list[CheckFact]:
    """Small messages pass, large ones do not. Where no size passes, what has closed a host to calls explains it."""
    mesh = survey.mesh()
    stuck = [pair for pair, one in mesh.items() if one.answered and one.large != "ok" and _is_stuck(survey, pair)]
    stuck = [pair for pair in stuck if not skip & set(pair)]
    if not stuck:
        return []
    labels = [node.label for node in survey.nodes]
    accused = common_host(stuck, [pair for pair, one in mesh.items() if one.answered and one.large == "ok"])
    passing = [size for pair in stuck for size, way in survey.sizes.get(pair, {}).items() if way == "ok"]
    most = min((max(sizes) for sizes in _passing(survey, stuck)), default=0)
    family = family_of(survey.nodes[stuck[0][1]].address)
    mtu = most + _HEADERS[family] if passing else 0
    if not passing and any(closed & set(pair) for pair in stuck):
        return []
    nodes = [survey.nodes[number] for pair in stuck for number in pair]
    said = max(node.mtu for node in nodes)
    interface = nodes[0].interface
    hosts = {number for pair in stuck for number in pair}
    return [
        observe(
            "large-packets-vanish",
            tuple(labels[number] for number in accused or sorted(hosts)),
            tuple(labels[number] for number in sorted(hosts - set(accused))),
            ends=named(labels, hosts),
            mtu=mtu or None,
            nothing=not mtu,
            interface=interface,
            device_mtu=said,
        )
    ]


def _passing(survey: Survey, stuck: Iterable[Pair]) -> list[list[int]]:
    found = [[size for size, way in survey.sizes.get(pair, {}).items() if way == "ok"] for pair in stuck]
    return [sizes for sizes in found if sizes]


def _is_stuck(survey: Survey, pair: Pair) -> bool:
    """Asked a second time, by sizes: some size must get stuck again. Pairs that were not asked follow their stalled call."""
    sizes = survey.sizes.get(pair)
    if sizes is None:
        return bool(survey.sizes)
    return any(way in ("up", "down") for way in sizes.values())


def speeds(survey: Survey) -> dict[Pair, Speed]:
    """Figures by pair, the best or the sum of its measurements."""
    found = {}
    for pair, told in survey.speeds.items():
        rtts = [float(rtt) for one in told if (rtt := one.get("min_rtt_us") or one.get("ping_us"))]
        drips = [_losses(one) for one in told if "drip" in one or one.get("resent")]
        # Nothing lost the second time: the first was chance, or a busy host.
        lost = sum(one[0] for one in drips) if drips and drips[-1][0] else 0
        sent = sum(one[1] for one in drips)
        rates = [min(_rate(one, "up"), _rate(one, "down")) for one in told if "up" in one and "down" in one]
        stalled = told[-1].get("outcome") != "ok"
        found[pair] = Speed(min(rtts, default=0.0), max(rates, default=0.0), lost, sent, stalled)
    return found


def _losses(one: Mapping[str, Any]) -> tuple[int, int]:
    """Small messages that were sent again, of how many; of a measurement that stalled only what was sent again is known."""
    drip = one.get("drip") or {"up": one.get("resent", 0)}
    return int(drip.get("up", 0)) + int(drip.get("down", 0)), int(drip.get("up_of", 0)) + int(drip.get("down_of", 0))


def _rate(one: Mapping[str, Any], way: str) -> float:
    return max(float(one[way]["rate"]), float(one.get(f"{way}_delivery") or 0))


def suspects(survey: Survey) -> dict[Pair, Mapping[str, Any]]:
    """What to measure once more, few of each host: bad once may be chance, or a busy host."""
    figures = speeds(survey)
    usual_rtt = median([one.rtt_us for one in figures.values()]) if figures else 0
    best_rate = max([one.rate for one in figures.values()], default=0.0)
    worst: dict[Pair, float] = {}
    for pair, one in figures.items():
        badness = one.lost * 10.0 + (1000.0 if one.stalled else 0.0)
        badness += one.rtt_us / 1000 if one.rtt_us > max(2000.0, 3 * usual_rtt) else 0
        badness += 50.0 if 0 < one.rate < max(2 * _NARROW_RATE, min(best_rate / 4, 2 * _NARROW_BELOW)) else 0
        if badness:
            worst[pair] = badness
    for pair, call in survey.mesh().items():  # not measured, but its call was slow or had to be made again
        if pair not in figures and (pair[1], pair[0]) not in figures and call.answered and call.large == "ok":
            slow = call.rtt_us > max(_SLOW_US, 4 * usual_rtt) and usual_rtt
            if slow or call.resent > 1 or call.attempts > 1:
                worst[pair] = 1.0
    chosen = _few_of_each(sorted(worst, key=lambda pair: -worst[pair]))
    return {pair: _closer(figures.get(pair)) for pair in chosen}


def _closer(seen: Speed | None) -> Mapping[str, Any]:
    """How to look again: longer at what was bad, and only at that."""
    if seen is None:
        return {}
    if seen.lost or seen.stalled:
        return {"drips": 500, "seconds": 0.0, "timeout": 2.5}
    return {"drips": 0, "seconds": 0.0 if seen.rtt_us > _SLOW_US else 0.15, "timeout": 2.0}


def _few_of_each(pairs: Iterable[Pair]) -> list[Pair]:
    """At most two pairs of a host: if it is at fault, two show it."""
    count: Counter[int] = Counter()
    found: list[Pair] = []
    for pair in pairs:
        if max(count[number] for number in pair) < _MOST_OF_EACH and len(found) < _MOST_AGAIN:
            found.append(pair)
            count.update(pair)
    return found


def _is_lossy(one: Speed) -> bool:
    return one.lost >= _LOST_LEAST and one.lost >= _LOST_SHARE * one.sent


def loses_by_chance(survey: Survey) -> Callable[[Pair], bool]:
    """Asks of a pair whether a connection that stands loses packets there; of one that was not measured, whether it does with either host."""
    measured = {frozenset(pair): _is_lossy(one) for pair, one in speeds(survey).items()}
    hosts = {number for pair, lossy in measured.items() if lossy for number in pair}
    return lambda pair: measured.get(frozenset(pair), bool(hosts & set(pair)))


def judge_speed(survey: Survey, skip: frozenset[int] = frozenset()) -> list[CheckFact]:
    """Loss, then latency, then bandwidth: each of them makes the next look bad too."""
    figures = {
        pair: one
        for pair, one in speeds(survey).items()
        if (not one.stalled or one.sent or one.lost) and not skip & set(pair)
    }
    if not figures:
        return []
    labels = [node.label for node in survey.nodes]
    found = []
    lossy = [pair for pair, one in figures.items() if _is_lossy(one)]
    if lossy:
        share = max(figures[pair].lost / max(figures[pair].lost, figures[pair].sent) for pair in lossy)
        found.append(_between("packets-lost", labels, lossy, figures, share=f"{share:.1%}"))
    far = [pair for pair in _far(figures) if pair not in lossy]
    if far:
        rest = [one.rtt_us for pair, one in figures.items() if pair not in far]
        usual = _ms(median(rest)) if rest else None
        rtt = _ms(max(figures[pair].rtt_us for pair in far))
        found.append(_between("path-is-far", labels, far, figures, rtt=rtt, usual=usual))
    narrow = [pair for pair in _narrow(figures, survey.busy()) if pair not in lossy and pair not in far]
    if narrow:
        rest = [one.rate for pair, one in figures.items() if pair not in narrow]
        usual = _mbit(median(rest)) if rest else None
        rate = _mbit(min(figures[pair].rate for pair in narrow))
        found.append(_between("path-is-narrow", labels, narrow, figures, rate=rate, usual=usual))
    return found


def _far(figures: Mapping[Pair, Speed]) -> list[Pair]:
    usual = median([one.rtt_us for one in figures.values()])
    least = min(one.rtt_us for one in figures.values())
    bound = max(
        _SLOW_US,
        _SLOW_TIMES * least
        if len(figures) > 1 and usual > _SLOW_US
        else _SLOW_TIMES * usual
        if len(figures) > 2
        else 0,
    )
    return [pair for pair, one in figures.items() if one.rtt_us > bound]


def _narrow(figures: Mapping[Pair, Speed], busy: Mapping[int, str]) -> list[Pair]:
    """Little in itself, or little beside the others; a busy host is only held to less, and not compared."""
    best = max(one.rate for one in figures.values())
    found = []
    for pair, one in figures.items():
        strained = any(number in busy for number in pair)
        bound = _NARROW_BUSY if strained else max(_NARROW_RATE, min(best / _NARROW_TIMES, _NARROW_BELOW))
        if 0 < one.rate < bound:
            found.append(pair)
    return found


def _between(
    name: str, labels: Sequence[str], bad: Sequence[Pair], figures: Mapping[Pair, Speed], **fields: Any
) -> CheckFact:
    accused = common_host(bad, figures)
    hosts = {number for pair in bad for number in pair}
    rest = hosts - set(accused)
    return observe(
        name,
        tuple(labels[number] for number in accused or sorted(hosts)),
        tuple(labels[number] for number in sorted(rest)),
        ends=between(labels, accused, rest),
        **fields,
    )


def _ms(us: float) -> str:
    return f"{us / 1000:.1f} ms"


def _mbit(rate: float) -> str:
    return f"{rate * 8 / 1e6:.0f} Mbit/s" if rate >= 125_000 else f"{rate * 8 / 1e3:.0f} kbit/s"


def judge_idle(survey: Survey, skip: frozenset[int] = frozenset()) -> list[CheckFact]:
    """Connections that worked, were idle, and no longer carry anything."""
    mesh = survey.mesh()
    dead = [(int(one["id"][0]), int(one["id"][1])) for one in survey.idle if one.get("outcome") in ("silent", "reset")]
    good = [(int(one["id"][0]), int(one["id"][1])) for one in survey.idle if one.get("outcome") == "pong"]
    dead = [pair for pair in dead if pair in mesh and mesh[pair].large == "ok" and not skip & set(pair)]
    if not dead:
        return []
    labels = [node.label for node in survey.nodes]
    accused = common_host(dead, good)
    hosts = {number for pair in dead for number in pair}
    return [
        observe(
            "idle-connections-forgotten",
            tuple(labels[number] for number in accused or sorted(hosts)),
            tuple(labels[number] for number in sorted(hosts - set(accused))),
            ends=named(labels, hosts),
            seconds=round(survey.idle_s, 1),
        )
    ]
