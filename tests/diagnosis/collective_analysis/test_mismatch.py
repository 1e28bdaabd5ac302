"""Calls of one number that differ: the situations of PyTorch's own tests for its analyzer, re-stated, and what it gets wrong."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from phalanx.diagnosis.collective_analysis import Break, Observation
from tests.diagnosis.collective_analysis.jobs import Call, entry, observed

Words = dict[str, Any]


def dumps(ranks: list[list[Words]], groups: dict[str, str] | None = None) -> dict[str, bytes]:
    """Files of ranks that made these calls in the world's group, or in the group that a call names."""
    world = str(list(range(len(ranks))))
    made = {}
    for rank, calls in enumerate(ranks):
        entries = []
        for order, words in enumerate(calls):
            base = entry(order, 0, order + 1, Call(0), True, 10**9 + order)
            entries.append(base | words)
        config = {"0": {"name": "0", "desc": "default_pg", "ranks": world}}
        made[f"dump_rank_{rank}"] = pickle.dumps(
            {"version": "2.8", "pg_config": config, "pg_status": {}, "entries": entries}, 2
        )
    return made


def call(op: str, taken: list[list[int]], given: list[list[int]] | None = None, **more: Any) -> Words:
    return {
        "profiling_name": f"nccl:{op}",
        "input_sizes": taken,
        "output_sizes": given if given is not None else taken,
        **more,
    }


def accused(found: list[Observation]) -> list[tuple[int, ...]]:
    assert all(one.kind is Break.MISMATCH for one in found), found
    return [one.ranks for one in found]


def test_the_same_calls() -> None:
    calls = [call("all_reduce", [[4, 4]]), call("all_gather", [[4]], [[4], [4], [4]])]
    assert observed(dumps([calls] * 3)) == []


@pytest.mark.parametrize("odd", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("other", "word"),
    [
        (call("all_gather", [[4, 4]]), "operation"),
        (call("all_reduce", [[5, 4]]), "size"),
        (call("all_reduce", [[4, 4]], input_dtypes=["Half"], output_dtypes=["Half"]), "type"),
        (call("all_reduce", [[4, 4]], [[4, 5]]), "size"),
        (call("all_reduce", [[4, 4]], output_dtypes=["Half"]), "type"),
    ],
)
def test_the_odd_one_is_accused_also_if_it_is_rank_0(odd: int, other: Words, word: str) -> None:
    """PyTorch's analyzer accuses ranks 1, 2 and 3 when rank 0 differs."""
    ranks = [[other if rank == odd else call("all_reduce", [[4, 4]])] for rank in range(4)]
    found = observed(dumps(ranks))
    assert accused(found) == [(odd,)]
    assert found[0].fact.fields["what"] == word


def test_a_tie_is_said_to_be_one() -> None:
    found = observed(dumps([[call("all_reduce", [[4]])], [call("broadcast", [[4]])]]))
    assert accused(found) == [()]
    assert "sides" in found[0].fact.fields


@pytest.mark.parametrize(
    "calls",
    [
        [
            call("all_to_all", [[4, 8]], [[5, 8]]),
            call("all_to_all", [[5, 8]], [[4, 8]]),
            call("all_to_all", [[1]], [[1]]),
        ],
        [
            call("gather", [[4, 4]], [[4, 4], [4, 4]]),
            call("gather", [[4, 4]], [[]], output_dtypes=[]),
            call("gather", [[4, 4]], []),
        ],
        [
            call("scatter", [[4], [4]], [[4]]),
            call("scatter", [], [[4]], input_dtypes=[]),
            call("scatter", [], [[4]], input_dtypes=[]),
        ],
        [call("all_reduce", [[4, 4]]), call("all_reduce", [[16]]), call("all_reduce", [[2, 8]])],
        [call("all_gather_v", [[4]]), call("all_gather_v", [[7]]), call("all_gather_v", [[1]])],
    ],
    ids=[
        "uneven exchange",
        "gather to the root",
        "scatter from the root",
        "the same number of elements",
        "uneven gather",
    ],
)
def test_sizes_that_may_differ_accuse_nobody(calls: list[Words]) -> None:
    assert observed(dumps([[one] for one in calls])) == []


def coalesced(sizes: list[int], name: str = "ALLGATHER_coalesced") -> list[Words]:
    """Entries of one coalesced call: they bear one number."""
    inner = [call("_broadcast_oop", [[size]], collective_seq_id=1) for size in sizes]
    return [*inner, call(name, [[]], collective_seq_id=1)]


def test_coalesced_calls_share_a_number() -> None:
    assert observed(dumps([coalesced([4, 4])] * 3)) == []
    assert accused(observed(dumps([coalesced([4, 4]), coalesced([4, 4]), coalesced([4, 5])]))) == [(2,)]


def test_the_size_of_the_result_is_told_where_it_differs() -> None:
    ranks = [[call("all_gather", [[4]], [[4]] * (3 if rank else 2))] for rank in range(3)]
    found = observed(dumps(ranks))
    assert accused(found) == [(0,)]
    assert "[[4]] into [[4], [4]]" in found[0].text


def test_a_rank_that_had_nothing_to_coalesce_is_not_accused() -> None:
    nothing = [call("coalesced", [[]], collective_seq_id=1)]
    full = coalesced([4, 4], "coalesced")
    assert observed(dumps([full, nothing, full])) == []
    assert accused(observed(dumps([full, nothing, coalesced([4, 5], "coalesced"), full]))) == [(2,)]
    assert accused(observed(dumps([[call("all_reduce", [[4]])], nothing, [call("all_reduce", [[4]])]]))) == [(1,)]


def test_one_rank_left_a_coalesced_call_out() -> None:
    whole = [call("all_reduce", [[4]]), *[one | {"collective_seq_id": 2} for one in coalesced([4, 4])]]
    other = [call("all_reduce", [[4]]), call("all_reduce", [[4]])]
    assert accused(observed(dumps([whole, other, whole]))) == [(1,)]


def test_groups_of_one_name_and_other_members_are_not_compared() -> None:
    files = dumps([[call("all_reduce", [[5]])], [call("all_reduce", [[6]])]])
    for rank, name in enumerate(list(files)):
        dump = pickle.loads(files[name])  # noqa: S301
        dump["pg_config"] = {"1": {"name": "1", "desc": "sub_pg", "ranks": f"[{rank}]"}}
        dump["entries"][0]["process_group"] = ("1", "sub_pg")
        files[name] = pickle.dumps(dump, 2)
    assert observed(files) == []
