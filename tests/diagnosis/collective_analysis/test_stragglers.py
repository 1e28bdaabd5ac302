"""The rank that is late time after time, told from the watchdog's noise and from those that it makes late."""

from __future__ import annotations

import pickle
import random

import pytest

from phalanx.diagnosis.collective_analysis import Break
from tests.diagnosis.collective_analysis.jobs import Call, entry, observed

MS = 1_000_000
POLL = 100 * MS


def dumps(late_by: int, rank_late: int, seed: int, world: int = 6, steps: int = 60) -> dict[str, bytes]:
    """Steps of 400 ms in pairs and in the world; ends are discovered at each rank's own poll, on its own clock."""
    choose = random.Random(seed)
    phase = [choose.randrange(POLL) for _ in range(world)]
    clock = [choose.randrange(10**17) for _ in range(world)]
    files = {}
    for rank in range(world):
        entries = []
        for order in range(2 * steps):
            start = (order // 2) * 400 * MS
            group = 0 if order % 2 else 1 + rank // 2
            created = start + choose.randrange(MS) + (late_by if rank == rank_late else 0)
            # In its pair only the late one comes late; the world waits for it, too.
            slow = late_by if group == 0 or rank // 2 == rank_late // 2 else 0
            ended = start + slow + 20 * MS
            found = ended + (phase[rank] - ended) % POLL
            words = {"time_created_ns": clock[rank] + created, "time_discovered_completed_ns": clock[rank] + found}
            entries.append(entry(order, group, order // 2 + 1, Call(group), True, 1) | words)
        config = {
            "0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))},
            str(1 + rank // 2): {
                "name": str(1 + rank // 2),
                "desc": "pair",
                "ranks": str([rank // 2 * 2, rank // 2 * 2 + 1]),
            },
        }
        files[f"trace_rank_{rank}"] = pickle.dumps({"version": "2.10", "pg_config": config, "entries": entries}, 2)
    return files


@pytest.mark.parametrize("rank", [0, 3, 5])
def test_a_steadily_late_rank_is_named_with_its_cost(rank: int) -> None:
    (found,) = observed(dumps(300 * MS, rank, seed=rank))
    assert (found.kind, found.ranks) == (Break.STRAGGLER, (rank,))
    amount = int(str(found.fact.fields["late"]).removesuffix(" ms"))
    assert 200 <= amount <= 400


@pytest.mark.parametrize("seed", range(6))
def test_the_noise_of_the_watchdog_is_no_straggler(seed: int) -> None:
    assert observed(dumps(0, 0, seed)) == []
    assert observed(dumps(30 * MS, 2, seed)) == []
