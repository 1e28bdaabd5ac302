"""The ranks that show a fault of their own, which the others demonstrably do not have: an exception, a crash, a kill."""

from __future__ import annotations

from phalanx.blame.table import About, Accusation, Doing, RankTable, Words
from phalanx.model.ranks import name_ranks

ORDER = 130
ABOUT = (About.OWN,)


def accuse(table: RankTable) -> Accusation | None:
    """Those that show it, unless the others may have had the same: their words are missing, cut off, or were never said."""
    shown, others = table.shown_by, table.others
    if not shown or not others or table.is_unattributed:
        return None
    if table.is_ending:
        return Accusation(shown, "own-fault", f"{name_ranks(shown)} ended without being ended")
    mute = frozenset(rank for rank in others if _is_mute(table, rank))
    if any(table.state(rank).words is Words.CUT for rank in others):
        return None
    if not mute <= table.coverage.ranks:
        return None  # what they said may be missing from the evidence
    if mute == others and (len(shown) > 1 or table.is_shared):
        return None  # several alike, or a fault that all have; the rest were ended before they came that far
    return Accusation(shown, "own-fault", f"only {name_ranks(shown)} shows it")


def _is_mute(table: RankTable, rank: int) -> bool:
    """Whether a rank neither said anything about the end nor ended well."""
    state = table.state(rank)
    return state.words is Words.NONE and state.doing is not Doing.LEFT
