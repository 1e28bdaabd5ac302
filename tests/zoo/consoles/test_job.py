import random

import pytest

from phalanx.zoo.consoles.job import groups_of, make_job


@pytest.mark.parametrize("world", [16, 64, 256])
def test_megatron_groups_cover_every_rank_once_in_each_kind(world):
    groups = groups_of(world, "megatron")
    for name in ("DATA_PARALLEL_GROUP", "TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP"):
        ranks = [rank for group in groups if group.name == name for rank in group.ranks]
        assert sorted(ranks) == list(range(world))


def test_a_rank_counts_only_the_groups_it_belongs_to():
    groups = groups_of(16, "megatron")
    job = make_job(random.Random(1), nodes=2, most=16)
    from dataclasses import replace

    job = replace(job, world=16, groups=groups)
    last = next(group for group in groups if group.name == "TENSOR_MODEL_PARALLEL_GROUP" and 15 in group.ranks)
    assert job.group_id(last, 15) == 2
    assert last.uid > 2


def test_enough_nodes_are_made():
    for seed in range(20):
        assert make_job(random.Random(seed), nodes=2).nodes >= 2
