import random
from dataclasses import replace

from phalanx.zoo.consoles import endings
from phalanx.zoo.consoles.job import make_job
from phalanx.zoo.consoles.stage import Stage


def _played(launcher):
    job = replace(make_job(random.Random(5), most=8), torch="2.6")
    stage = Stage(job, random.Random(5), "plain", launcher)
    stage.deaths.append((1.0, 3, -9))
    endings.collapse(stage, tells={3: "who"})
    return stage


def test_torchrun_names_rank_signal_and_pid_in_its_table():
    stage = _played("torchrun")
    table = next(line for line in stage.lines if "ChildFailedError" in line.text)
    assert "rank      : 3 (local_rank: 3)" in table.text
    assert f"Signal 9 (SIGKILL) received by PID {stage.job.pids[3]}" in table.text
    assert "who" in table.tells
    assert sum("closing signal SIGTERM" in line.text for line in stage.lines) == 7


def test_srun_names_the_task():
    assert any("task 3: Killed" in line.text for line in _played("srun").lines)


def test_deepspeed_names_only_the_exit_status():
    stage = _played("deepspeed")
    assert any("exits with return code = -9" in line.text for line in stage.lines)
    assert not any("who" in line.tells for line in stage.lines)
