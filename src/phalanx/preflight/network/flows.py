"""Connections between the same hosts and ports of which some pass and some vanish: one of several paths is dead, or connections are rationed.

Routers and bonds choose the path of a connection by its addresses and ports. A probe that calls once has luck or has not; so to few hosts some more
calls are made, each once, all at the same time as the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.network.blocked import Pair, Table
from phalanx.preflight.network.quality import loses_by_chance
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.words import between, common_host, places

_LATE_S = 0.9  # the kernel asks again after a second: answered then means lost once, as chance does it
_LEAST = 3


@dataclass(slots=True)
class Tally:
    """What came of the single calls of a pair."""

    made: int = 0
    lost: int = 0
    late: int = 0


def judge_flows(survey: Survey, table: Table) -> list[CheckFact]:
    """Told only if some connections of a pair pass, several vanish, none is merely late, and those that stand lose nothing: else it is loss."""
    tallies: dict[Pair, Tally] = {}
    by_chance = loses_by_chance(survey)  # a dead path or a ration leaves a connection that stands alone
    for one in survey.of("flow"):
        if (one.source, one.target) not in table.calls or by_chance((one.source, one.target)):
            continue
        tally = tallies.setdefault((one.source, one.target), Tally())
        tally.made += one.outcome in ("ok", "silent")
        tally.lost += one.outcome == "silent"
        tally.late += one.answered and one.seconds > _LATE_S
    for call in (one for kind in ("mesh", "given", "spread") for one in survey.of(kind)):
        seen = tallies.get((call.source, call.target))
        if seen is None or not seen.lost:
            continue
        if (
            call.answered and call.attempts > 1
        ):  # where single calls vanish, one that passed at the second attempt did so by luck
            seen.made += call.attempts
            seen.lost += call.attempts - 1
        elif call.kind == "mesh" and call.outcome == "silent":
            seen.made += 1
            seen.lost += 1
    bad = {pair: tally for pair, tally in tallies.items() if 0 < tally.lost < tally.made}
    # A target that lets few in keeps some callers out altogether.
    targets = {pair[1] for pair, tally in bad.items() if 2 * tally.lost > tally.made}
    bad |= {pair: tally for pair, tally in tallies.items() if pair[1] in targets and tally.lost}
    made, lost, late = (sum(getattr(tally, what) for tally in bad.values()) for what in ("made", "lost", "late"))
    if lost < _LEAST or 2 * late > lost:
        return []
    accused = common_host(bad, [pair for pair in tallies if pair not in bad])
    hosts = {number for pair in bad for number in pair}
    ends = between(table.labels, accused, hosts - set(accused))
    where = places(table.calls[pair] for pair in bad)
    table.explain(bad)
    table.by_luck |= set(bad)
    named = table.label(*(accused or sorted(hosts)))
    return [
        observe(
            "some-connections-vanish",
            named,
            table.label(*sorted(hosts - set(accused))),
            made=made,
            lost=lost,
            passed=made - lost,
            ends=ends,
            places=where,
        )
    ]
