"""The rows of the rank table, from logs: how each rank ended, what it said, in which call it waited."""

from __future__ import annotations

from phalanx.blame import Doing, Words
from phalanx.diagnosis.history import History
from phalanx.diagnosis.rank_states import only_victims, rank_states
from phalanx.model import Event, EventKind, Rank, World
from phalanx.sources import Observations


def history(*events: Event, size: int = 4) -> History:
    ranks = tuple(Rank(number) for number in range(size))
    return History(Observations(events=list(events)), World(size, ranks=ranks))


def event(kind: EventKind, rank: int, **data: object) -> Event:
    return Event(kind, "", "job.log", rank + 1, rank, data=data)


def test_a_row_says_how_a_rank_ended_and_what_it_said() -> None:
    told = history(
        event(EventKind.EXIT, 0, code=0),
        event(EventKind.EXIT, 1, code=-11),
        event(EventKind.TIMEOUT, 2, op="ALLREDUCE", seq=7),
        event(EventKind.EXCEPTION, 3, type="ValueError"),
    )
    rows = rank_states(told, frozenset())
    assert [rows[rank].doing for rank in range(4)] == [Doing.LEFT, Doing.GONE, Doing.WAITING, Doing.SEEN]
    assert [rows[rank].words for rank in range(4)] == [Words.NONE, Words.NONE, Words.VICTIM, Words.OWN]
    assert rows[1].ending is not None
    assert rows[1].ending.is_own
    assert rows[0].ending is not None
    assert not rows[0].ending.is_own


def test_calls_are_kept_by_group_and_the_first_that_timed_out_counts() -> None:
    told = history(
        event(EventKind.TIMEOUT, 0, op="ALLREDUCE", seq=8, group="0"),
        event(EventKind.TIMEOUT, 0, op="ALLGATHER", seq=7, group="0"),
        event(EventKind.TIMEOUT, 0, op="SEND", seq=3, group="pp"),
    )
    row = rank_states(told, frozenset())[0]
    assert [(call.group, call.seq, call.op) for call in row.calls] == [("0", 7, "ALLGATHER"), ("pp", 3, "SEND")]


def test_the_call_that_a_rank_failed_in_has_no_number() -> None:
    why = {"call": {"op": "recv", "root": "1", "shape": "[4]"}, "failed_at": "train.py:9", "condition": "if rank == 0"}
    row = rank_states(history(event(EventKind.EXIT, 0, code=1, why=why)), frozenset())[0]
    assert row.calls[0].number is None
    assert (row.calls[0].peer, row.calls[0].sizes, row.condition) == (1, "[4]", "if rank == 0")


def test_a_victim_is_who_says_nothing_else() -> None:
    assert only_victims([(True, frozenset({0, 1})), (False, frozenset({1, 2}))]) == {0}
    told = history(event(EventKind.EXCEPTION, 0, type="RuntimeError"))
    assert rank_states(told, frozenset({0}))[0].words is Words.VICTIM


def test_fingerprints_tell_the_calls_of_both_ranks() -> None:
    text = "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, TensorShape=[4]), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=BROADCAST)"
    states = rank_states(history(Event(EventKind.EXCEPTION, text, "job.log", 1, 0)), frozenset())
    assert [state.calls[0].op for rank, state in states.items() if rank < 2] == ["ALLREDUCE", "BROADCAST"]
