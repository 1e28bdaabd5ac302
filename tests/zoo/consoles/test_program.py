import random
from dataclasses import replace

from phalanx.zoo.consoles.job import groups_of, make_job
from phalanx.zoo.consoles.program import step_of, waits


def _job(world, parallelism):
    job = make_job(random.Random(3), nodes=2)
    hosts = tuple(f"n{node}" for node in range(world // 8))
    return replace(
        job,
        world=world,
        parallelism=parallelism,
        groups=groups_of(world, parallelism),
        hosts=hosts,
        pids=tuple(range(world)),
    )


def test_all_others_wait_in_the_call_that_one_rank_stays_away_from():
    job = _job(16, "ddp")
    stuck, main = waits(job, 100, random.Random(1), {5: 2})
    assert set(stuck) == set(range(16)) - {5}
    assert {one.seq for one in stuck.values()} == {403}
    assert {one.completed for one in stuck.values()} == {402}
    assert main[5].enqueued == main[5].completed == 402


def test_a_stall_spreads_from_group_to_group():
    job = _job(16, "megatron")
    stuck, _ = waits(job, 10, random.Random(1), {12: 0})
    assert set(stuck) == set(range(16)) - {12}
    assert len({one.call.group.name for one in stuck.values()}) > 1


def test_nobody_waits_where_nobody_stays_away():
    job = _job(16, "fsdp")
    stuck, main = waits(job, 10, random.Random(1), {})
    assert stuck == {}
    assert main[0].completed == 11 * sum(call.group.uid == 0 for call in step_of(job))
