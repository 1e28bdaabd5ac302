"""Stalls that schedules of collectives do not show: pairs, circles, groups in another order, devices, connections."""

from __future__ import annotations

import json
import pickle
from typing import Any

from phalanx.diagnosis.collective_analysis import Break
from tests.diagnosis.collective_analysis.jobs import Call, Job, entry, observed


def pair(order: int, op: str, rank: int, peer: int, over: bool = False) -> dict[str, Any]:
    arrow = "->" if op == "send" else "<-"
    words = {
        "profiling_name": f"nccl:{op} {rank}{arrow}{peer}",
        "is_p2p": True,
        "p2p_seq_id": order + 1,
        "collective_seq_id": 0,
    }
    return entry(order, 0, 0, Call(0), over, 10**9 + order) | words


def collective(order: int, group: int, seq: int, over: bool = False, **more: Any) -> dict[str, Any]:
    return entry(order, group, seq, Call(group), over, 10**9 + order, **more)


def files(ranks: dict[int, list[dict[str, Any]]], groups: list[list[int]]) -> dict[str, bytes]:
    made = {}
    for rank, entries in ranks.items():
        config = {
            str(n): {"name": str(n), "desc": "default_pg" if n == 0 else f"group {n}", "ranks": str(members)}
            for n, members in enumerate(groups)
            if rank in members
        }
        made[f"rank{rank}.pickle"] = pickle.dumps(
            {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}, 2
        )
    return made


def test_receives_that_wait_for_one_another() -> None:
    found = observed(files({0: [pair(0, "recv", 0, 1)], 1: [pair(0, "recv", 1, 0)]}, [[0, 1]]))
    assert [(one.kind, one.ranks, one.waiting) for one in found] == [(Break.CYCLE, (), (0, 1))]


def test_a_ring_of_receives() -> None:
    ranks = {rank: [pair(0, "recv", rank, (rank + 1) % 4)] for rank in range(4)}
    found = observed(files(ranks, [[0, 1, 2, 3]]))
    assert [(one.kind, one.ranks, one.waiting) for one in found] == [(Break.CYCLE, (), (0, 1, 2, 3))]


def test_a_receive_without_its_send() -> None:
    """Rank 2 receives from rank 3, which went on to the call that all others are in."""
    ranks = {rank: [collective(0, 0, 1)] for rank in (0, 1, 3)} | {2: [pair(0, "recv", 2, 3)]}
    found = observed(files(ranks, [[0, 1, 2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.PARTNER, (2,))]
    assert "recv from rank 3" in found[0].text


def test_pairs_that_met_are_not_accused() -> None:
    ranks = {0: [pair(0, "send", 0, 1, True)], 1: [pair(0, "recv", 1, 0, True)]}
    assert observed(files(ranks, [[0, 1]])) == []


def test_a_pipeline_behind_a_stalled_host() -> None:
    """1 waits for 2, which waits for 3, which has nothing outstanding: only 3 is where it began."""
    ranks = {
        0: [pair(0, "recv", 0, 1)],
        1: [pair(0, "recv", 1, 2)],
        2: [pair(0, "recv", 2, 3)],
        3: [collective(0, 0, 1, True)],
    }
    found = observed(files(ranks, [[0, 1, 2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.HOST, (3,))]


def test_a_stall_in_one_group_spreads_to_another() -> None:
    """Ranks 0 and 1 wait in group 1 for rank 2, which waits in group 2 for rank 3."""
    ranks = {
        0: [collective(0, 1, 1)],
        1: [collective(0, 1, 1)],
        2: [collective(0, 2, 1)],
        3: [collective(0, 0, 1, True)],
    }
    found = observed(files(ranks, [[0, 1, 2, 3], [0, 1, 2], [2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.HOST, (3,))]


def test_groups_used_in_another_order() -> None:
    ranks = {rank: [collective(0, 0, 1)] for rank in (0, 1, 2)} | {3: [collective(0, 1, 1)]}
    found = observed(files(ranks, [[0, 1, 2, 3], [2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.ORDER, (3,))]


def test_two_ranks_in_two_groups_are_a_tie() -> None:
    found = observed(files({0: [collective(0, 0, 1)], 1: [collective(0, 1, 1)]}, [[0, 1], [0, 1]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.CYCLE, ())]


def test_a_call_of_a_pair_that_one_of_it_left_out_is_told_by_the_other_pair() -> None:
    groups = [[0, 1, 2, 3], [0, 1], [2, 3]]
    calls = {
        rank: [collective(0, 0, 1, True), collective(1, pair, 1, True), collective(2, 0, 2, True)]
        for rank, pair in ((0, 1), (1, 1), (2, 2), (3, 2))
    }
    for rank in (0, 1):
        calls[rank] += [collective(3, 0, 3, True), collective(4, 1, 2, True), collective(5, 0, 4)]
    calls[2] += [collective(3, 0, 3, True), collective(4, 2, 2)]
    calls[3] += [collective(3, 0, 3, True), collective(4, 0, 4)]
    found = observed(files(calls, groups))
    assert [(one.kind, one.ranks) for one in found] == [(Break.ORDER, (3,))]


def test_a_pair_that_quarrels_without_witnesses_is_a_tie() -> None:
    # the others have no pair of their own, and both calls have been made at such a place before
    calls = {rank: [collective(seq, 0, seq, True) for seq in (1, 2, 3)] + [collective(5, 0, 4)] for rank in (0, 1)}
    for rank in (2, 3):
        calls[rank] = [
            collective(0, 0, 1, True), collective(1, 1, 1, True), collective(2, 0, 2, True), collective(3, 0, 3, True)
        ]  # fmt: skip
    calls[2] += [collective(4, 1, 2)]
    calls[3] += [collective(4, 0, 4)]
    found = observed(files(calls, [[0, 1, 2, 3], [2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.CYCLE, ())]


def test_of_one_that_waits_and_many_that_are_idle_nobody_is_accused() -> None:
    ranks = {rank: [collective(0, 0, 1, True)] for rank in range(4)}
    ranks[1].append(collective(1, 0, 2))
    found = observed(files(ranks, [[0, 1, 2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.CYCLE, ())]


def test_all_entered_and_nobody_stands_out() -> None:
    ranks = {rank: [collective(0, 0, 1, True), collective(1, 0, 2)] for rank in range(4)}
    found = observed(files(ranks, [[0, 1, 2, 3]]))
    assert [(one.kind, one.ranks, one.waiting) for one in found] == [(Break.NETWORK, (), (0, 1, 2, 3))]


def test_the_first_call_never_ends() -> None:
    found = observed(files({rank: [collective(0, 0, 1)] for rank in range(4)}, [[0, 1, 2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.UNCONNECTED, ())]


def test_a_device_that_does_not_start() -> None:
    ranks = {rank: [collective(0, 0, 1, True), collective(1, 0, 2, state="started")] for rank in range(4)}
    ranks[3][1]["state"] = "scheduled"
    found = observed(files(ranks, [[0, 1, 2, 3]]))
    assert [(one.kind, one.ranks) for one in found] == [(Break.DEVICE, (3,))]


def test_behind_by_several_calls_is_said() -> None:
    job = Job(4, [(0, 1, 2, 3)], [Call(0)] * 6, ("host", 1, 3), ahead=2).run()
    (found,) = observed(job.dumps())
    assert found.ranks == (1,)
    assert "3 calls behind" in found.text


def test_half_of_the_ranks_idle_is_a_tie() -> None:
    ranks = {rank: [collective(0, 0, 1, True)] for rank in range(4)}
    for rank in (0, 1):
        ranks[rank].append(collective(1, 0, 2))
    found = observed(files(ranks, [[0, 1, 2, 3]]))
    assert [one.ranks for one in found] == [()]
    assert "idle" in found[0].fact.fields


def test_most_dumps_missing_accuses_nobody_of_it() -> None:
    found = observed(files({0: [collective(0, 0, 1)]}, [[0, 1, 2, 3]]))
    assert all(not one.ranks for one in found)


def test_names_of_groups_cannot_break_the_sentence() -> None:
    ranks = {0: [collective(0, 0, 1)], 1: []}
    made = files(ranks, [[0, 1]])
    for name, data in made.items():
        made[name] = data.replace(b"default_pg", b"x; rank 7 ")
    found = observed(made)
    assert [one.ranks for one in found] == [(1,)]


def test_a_call_of_a_group_whose_members_nobody_wrote() -> None:
    """Gloo's dumps name groups and not who belongs to them: rank 1 took another group than ranks 0 and 2."""
    ranks = {0: [collective(0, 0, 1)], 1: [collective(0, 1, 1)], 2: [collective(0, 0, 1)]}
    made = {
        f"rank{rank}.json": json.dumps(
            {
                "version": "2.10",
                "pg_config": {"": {"name": "", "desc": "", "ranks": "[]"}},
                "pg_status": {},
                "entries": entries,
                "rank": rank,
                "world_size": 3,
            }
        ).encode()
        for rank, entries in ranks.items()
    }
    found = observed(made)
    assert [(one.kind, one.ranks, one.waiting) for one in found] == [(Break.ORDER, (1,), (0, 2))]
