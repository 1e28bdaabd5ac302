"""Ranks that gave up by a time-out of their own before the watch spoke: where they stood is told by their last words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.model import Frame
from phalanx.run.observer import GIVEN_UP, Observation
from phalanx.run.watch.last_words import last_traceback
from phalanx.run.watch.loops import is_common_path
from phalanx.run.watch.partners import SENDS, Partner, is_point_to_point
from phalanx.run.watch.rank_position import Doing, RankPosition, doing_of, position_of
from phalanx.run.watch.snapshot import Snapshot
from phalanx.run.watch.stall_verdict import judge_stall
from phalanx.sources.rank_conditions import condition_above
from phalanx.sources.user_code import source_line

_TIMED_OUT = re.compile(rb"(?i)timed? ?-?out")
_LOST = re.compile(rb"(?i)closed by peer|reset by peer|broken pipe|socket closed")
_LAST_LINES = 4  # of an exception; before them stand its frames


class GivenUp:
    """Collects how ranks ended, and tells once who they had waited for."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._stood: dict[int, RankPosition] = {}
        self._timed_out = False
        self._told = False
        self._snapshot: Snapshot | None = None
        self._quiet, self._since = 0.0, 0.0

    def ended(
        self, rank: int, code: int, last: Sequence[bytes], call: Mapping[str, Any], now: float, quiet: float
    ) -> None:
        """A rank is gone; `quiet` is how long nothing had moved before."""
        if code == 0:
            self._stood[rank] = RankPosition(rank, Doing.ENDED, code=0)
            return
        words = b"\n".join(last[-_LAST_LINES:])
        has_timed_out = bool(_TIMED_OUT.search(words))
        position = _where_it_stood(rank, last, call) if has_timed_out or _LOST.search(words) else None
        if position is not None:
            self._stood[rank] = position
            self._timed_out = self._timed_out or has_timed_out
            self._quiet, self._since = max((self._quiet, self._since), (quiet, now))

    def seen(self, taken: Snapshot) -> None:
        """Stacks of those that still live, taken when the first had gone."""
        self._snapshot = self._snapshot or taken

    def tell(self, now: float, living: bool) -> list[Observation]:
        """What the job had stood still for, if it was a time-out that ended it, all ranks are known, and somebody is to blame."""
        if self._told or not self._timed_out or (living and self._snapshot is None):
            return []
        self._told = True
        positions, taken = dict(self._stood), self._snapshot
        recorders = taken.recorders if taken is not None else {}
        for rank, stacks in taken.stacks.items() if taken is not None else ():
            outstanding = any(state.waits_in is not None for state in recorders.get(rank, {}).values()) or None
            positions[rank] = position_of(rank, stacks, outstanding=outstanding, is_idle=True, size=self._size)
        if len(positions) < self._size or any(one.doing is Doing.UNKNOWN for one in positions.values()):
            return []
        verdict = judge_stall(positions, recorders, self._size)
        if not verdict.culprits:
            return []  # the time-out's own words tell as much
        quiet = self._quiet
        data = {**verdict.data, "kind": GIVEN_UP, "quiet_s": round(quiet, 1)}
        data["told_after_s"] = round(quiet + now - self._since, 1)
        if taken is not None:
            data["snapshot"] = taken.number
        text = f"nothing has moved for {quiet:.0f} s: {verdict.text}"
        return [Observation("stall", verdict.culprits, text, data, (verdict.fact(quiet),))]


def _where_it_stood(rank: int, last: Sequence[bytes], call: Mapping[str, Any]) -> RankPosition | None:
    """In which collective, at which line; None if it was in none."""
    frames = tuple(last_traceback(last))
    mine = tuple(frame for frame in frames if frame.is_user_code)
    doing, name = doing_of(frames, outstanding=True)
    if doing is not Doing.COLLECTIVE or not mine:
        return None
    frame, under = mine[-1], condition_above(frames)
    return RankPosition(
        rank,
        doing,
        name,
        Frame(frame.file, frame.line, frame.function, source_line(frame.file, frame.line)),
        under[0] if under else "",
        under[1] if under else None,
        partner=_partner(name, call),
        common=is_common_path(frames),
        stack=mine,
    )


def _partner(name: str, call: Mapping[str, Any]) -> Partner | None:
    other = str(call.get("to" if name in SENDS else "root", ""))
    return Partner(int(other), name in SENDS) if is_point_to_point(name) and other.isdecimal() else None
