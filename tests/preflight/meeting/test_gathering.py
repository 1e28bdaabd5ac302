"""Ranks that gather in a folder: who leads whom, and who comes when the lead is taken already."""

from __future__ import annotations

from pathlib import Path

from phalanx.preflight.meeting.folder import Presence
from phalanx.preflight.meeting.gathering import Gatherer
from phalanx.preflight.meeting.seat import Seat, seat_of


def seat(rank: int) -> Seat:
    found = seat_of({"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29477"})
    assert found is not None
    return found


def test_a_rank_that_comes_when_the_lead_is_taken_is_asked_too(tmp_path: Path) -> None:
    """A world size that is too small: rank 0 would say that nothing is wrong, and the third rank would wait for nobody."""
    gatherer = Gatherer(seat(0), tmp_path / "meeting", by_network=False, wait=30.0, link=False)
    second = Presence(tmp_path / "meeting", seat(1), "second")
    found = gatherer.gather(lambda _: None)
    assert (found.leads, [target.ranks for target in found.targets]) == (True, [(0,), (1,)])
    assert gatherer.latecomers() == []
    third = Presence(tmp_path / "meeting", seat(2), "third")
    (late,) = gatherer.latecomers()
    assert late.ranks == (2,)
    assert "time" in late.ask("clock", {}, 30.0)[0]
    assert gatherer.latecomers() == []
    for one in (second, third):
        one.leave([])
    gatherer.close()
    assert list(tmp_path.iterdir()) == []
