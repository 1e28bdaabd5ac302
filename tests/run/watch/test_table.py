"""The rank table as the watch fills it."""

from __future__ import annotations

from phalanx.blame import About
from phalanx.blame import Doing as Does
from phalanx.blame.table import CONNECTING
from phalanx.model import Frame
from phalanx.run.watch.partners import Partner
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.recorder import Call, GroupState
from phalanx.run.watch.table import table_of

LINE = Frame("train.py", 88, "train")


def test_rows_of_stacks_and_recorders() -> None:
    entered, waits_in = Call("0", 6, "barrier", ""), Call("0", 5, "all_reduce", "[4]")
    positions = {
        0: RankPosition(0, Doing.COLLECTIVE, "all_reduce", LINE, condition="if rank == 0"),
        1: RankPosition(1, Doing.COLLECTIVE, "recv", LINE, partner=Partner(0, sends=False, tag=7)),
        2: RankPosition(2, Doing.CONNECT, "init_process_group", LINE),
        3: RankPosition(3, Doing.ENDED, code=3),
    }
    table = table_of(positions, {0: {"0": GroupState(entered, waits_in, {})}, 4: {}}, 6)
    assert table.about is About.STALL
    assert table.shown_by == {0, 1, 2}
    assert table.everyone == set(range(6))
    (own,) = table.state(0).calls
    assert (own.group, own.seq, own.last_enqueued, own.op) == ("0", 5, 6, "all_reduce")
    assert table.state(0).condition == "if rank == 0"
    assert table.exchanges[1].peer == 0
    assert table.exchanges[1].facts == {"way": "from", "tag": "7"}
    assert table.groups[CONNECTING].keys() == {2}
    assert table.state(3).doing is Does.GONE
    assert table.state(4).doing is table.state(5).doing is Does.UNSEEN
