"""What one machine tells another comes back as it was."""

import json

import pytest

from phalanx.attaching.looks import JobMotion, RankMotion
from phalanx.attaching.plain import from_plain, to_plain
from phalanx.model import Frame
from phalanx.run.watch.network import Connection
from phalanx.run.watch.partners import Partner
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.stacks import ProcessStacks, Thread

FRAME = Frame("/a/train.py", 3, "main", "x = 1")
THREAD = Thread("MainThread", True, (FRAME,), values=({"step": "3"},))
MOTION = JobMotion(
    {
        1: RankMotion(
            7,
            RankPosition(1, Doing.COLLECTIVE, "send", FRAME, partner=Partner(0, True), passes=(("a", "b", "c", 1),)),
            True,
            0.5,
            0.0,
            0.0,
            False,
            (THREAD,),
            ProcessStacks(7, (THREAD,)),
            (),
            (Connection(1, ("127.0.0.1", 1), ("127.0.0.1", 2), 1, 0, 0, 0),),
        )
    },
    2.5,
    None,
)


def test_a_view_survives_json() -> None:
    assert from_plain(JobMotion, json.loads(json.dumps(to_plain(MOTION)))) == MOTION


@pytest.mark.parametrize(
    "data", [None, [], {"ranks": []}, {"ranks": {"1": {}}, "seconds": 1, "quiet": None}, {"ranks": {"x": 1}}]
)
def test_other_data_are_refused(data: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_plain(JobMotion, data)
