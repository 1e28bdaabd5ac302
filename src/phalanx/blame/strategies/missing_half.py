"""Two ranks both receive from each other, or both send: one of them left out the other half of the exchange."""

from __future__ import annotations

from phalanx.blame.table import About, Accusation, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 25
ABOUT = (About.OWN, About.PEERS, About.CALLS)


def accuse(table: RankTable) -> Accusation | None:
    """The one whose own half stands under a condition in the source that it may have passed by, if its partner's does not."""
    for rank, state in sorted(table.states.items()):
        own = next((call for call in state.calls if call.peer is not None), None)
        if not state.skipped_half or own is None or own.peer is None:
            continue
        partner = table.state(own.peer)
        faces = any(call.peer == rank and call.facts.get("way") == own.facts.get("way") for call in partner.calls)
        if faces and not partner.skipped_half:
            accused = frozenset({rank})
            return Accusation(
                accused, "missing-half", f"{name_ranks(accused)} may have passed by its half of the exchange"
            )
    return None
