"""Half of the ranks or fewer wait in what a script does beside its steps (evaluating, saving), after all came equally far."""

from __future__ import annotations

import re

from phalanx.blame.table import About, Accusation, RankTable

ORDER = 5
ABOUT = (About.PEERS,)
_BESIDE_STEPS = re.compile(r"eval|valid|test|save|checkpoint|export|metric|report|final|predict", re.I)  # functions


def accuse(table: RankTable) -> Accusation | None:
    """Nobody: the others may have ended, with nothing left to do, as well as those that wait may have called alone."""
    waiting, others = table.shown_by, table.others
    if not waiting or len(waiting) > len(others):
        return None
    if any((ending := table.state(rank).ending) is not None and ending.code != 0 for rank in others):
        return None
    if not any(_BESIDE_STEPS.search(line.function) for rank in waiting for line in table.state(rank).stack):
        return None
    steps = {table.state(rank).last_step for rank in table.everyone}
    if None in steps or len(steps) != 1:
        return None
    return Accusation(frozenset(), "aside", "all ranks are at the same step, and the call is one beside the steps")
