"""A report names the missing ranks: a stall inspector, a monitored barrier, a check, a supervisor's watch."""

from __future__ import annotations

from phalanx.blame.quorum import is_majority, is_minority
from phalanx.blame.table import About, Accusation, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 10
ABOUT = (About.NAMED, About.PEERS, About.CALLS)


def accuse(table: RankTable) -> Accusation | None:
    """All that are named, if they are few. Where ranks wait for different things, those that the fewest are missed together with."""
    if not table.named:
        return None
    together = frozenset().union(*table.named)
    everyone = table.everyone
    if len(everyone) < 2:  # nothing but the report tells of ranks: those it names and whoever wrote it
        everyone = together | frozenset(range(max(*together, len(together)) + 1))
    smallest = min(table.named, key=len)
    is_clear = not any(len(other) == len(smallest) and other != smallest for other in table.named)
    if table.about is About.NAMED and together <= everyone and not is_majority(together, everyone):
        return Accusation(
            together, "named", f"a report names {name_ranks(together)}"
        )  # nothing is compared: half is no tie
    for accused in (together & everyone, smallest if is_clear else frozenset()):
        if is_minority(accused, everyone, directed=True):
            return Accusation(accused, "named", f"a report names {name_ranks(accused)}")
    return None
