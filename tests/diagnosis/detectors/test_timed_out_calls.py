"""Ranks that timed out in the same number of a group with another call."""

from __future__ import annotations

from phalanx.diagnosis.detectors.protocol import Job
from phalanx.diagnosis.detectors.timed_out_calls import detect
from phalanx.model import Event, EventKind
from phalanx.sources import FileSurvey


def _timeout(rank: int, op: str = "ALLREDUCE", sizes: str = "64 in, 64 out", seq: int = 812, group: str = "0") -> Event:
    data = {"op": op, "sizes": sizes, "seq": seq, "group": group}
    return Event(EventKind.TIMEOUT, "", "job.log", rank + 1, rank, source="nccl-watchdog", data=data)


def _facts(*events: Event) -> list[tuple[str, tuple[int, ...]]]:
    found = [event.fact for event in detect(Job((), events))]
    return [(str(fact.fields["what"]), fact.ranks) for fact in found if fact is not None]


def test_another_operation_at_the_same_number() -> None:
    assert _facts(_timeout(0), _timeout(1), _timeout(2, op="BROADCAST")) == [("operation", (2,))]


def test_another_size_at_the_same_number() -> None:
    assert _facts(_timeout(0), _timeout(1, sizes="32 in, 32 out"), _timeout(2)) == [("size", (1,))]


def test_other_numbers_and_other_groups_are_not_compared() -> None:
    assert _facts(_timeout(0), _timeout(1), _timeout(2, op="BROADCAST", seq=813)) == []
    assert _facts(_timeout(0), _timeout(1), _timeout(2, op="BROADCAST", group="7")) == []


def test_a_tie_and_a_pair_accuse_nobody() -> None:
    assert _facts(_timeout(0), _timeout(1, op="BROADCAST")) == [("operation", ())]
    odd = [_timeout(rank, op="BROADCAST") for rank in (2, 3)]
    assert _facts(_timeout(0), _timeout(1), *odd) == [("operation", ())]


def test_exchanges_may_differ_in_size() -> None:
    assert (
        _facts(_timeout(0, "ALLTOALL_BASE"), _timeout(1, "ALLTOALL_BASE"), _timeout(2, "ALLTOALL_BASE", "8 in, 9 out"))
        == []
    )


def test_senders_and_receivers_differ_by_nature() -> None:
    assert _facts(_timeout(0, op="SEND"), _timeout(1, op="RECV"), _timeout(2, op="RECV")) == []


def test_only_the_first_time_out_of_a_rank_counts() -> None:
    assert _facts(_timeout(0), _timeout(1), _timeout(2), _timeout(2, op="BROADCAST", seq=813)) == []


def test_a_call_that_the_whole_job_is_in_misses_nobody() -> None:
    calls = [_timeout(rank) for rank in range(4)]
    told = FileSurvey("job.log", world_sizes=[4])
    (found,) = detect(Job((told,), tuple(calls)))
    assert found.fact is not None
    assert (found.fact.id, found.fact.ranks, found.fact.fields["waiting"]) == (
        "trace.network-stalled",
        (),
        (0, 1, 2, 3),
    )
    assert not [*detect(Job((told,), tuple(calls[:3])))]  # rank 3 is not seen there
    assert not [*detect(Job((), tuple(calls)))]  # nothing tells that there are no more
