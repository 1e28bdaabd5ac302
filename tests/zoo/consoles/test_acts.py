import random

import pytest

from phalanx.zoo.consoles import acts
from phalanx.zoo.consoles.job import TORCH, make_job
from phalanx.zoo.consoles.stage import Stage


def _stage(torch):
    from dataclasses import replace

    job = make_job(random.Random(5), most=8)
    return Stage(replace(job, torch=torch), random.Random(5), "plain", "torchrun")


@pytest.mark.parametrize("torch", TORCH)
def test_watchdogs_print_as_their_release_does(torch):
    stage = _stage(torch)
    acts.train(stage, 10)
    acts.time_out(stage, *acts.hold(stage, {3: 0}))
    text = "\n".join(line.text for line in stage.lines)
    assert text.count("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=") >= 7
    assert ("[rank0]:[E" in text) == (torch not in ("1.13", "2.0"))
    assert ("last enqueued" in text) == (torch in ("2.4", "2.6", "2.9", "2.13"))
    assert ("PG GUID" in text) == (torch in ("2.6", "2.9", "2.13"))
    assert ("Received a dump signal" in text) == (torch in ("2.9", "2.13"))
    assert {rank for _, rank, _ in stage.deaths} == set(range(8)) - {3}


def test_the_rank_in_the_watchdogs_text_is_the_one_within_its_group():
    stage = _stage("2.6")
    group = stage.job.groups[0]
    assert "Rank 2]" in str(stage.group_fields(group, 2)["group"])
