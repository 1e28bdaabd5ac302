"""What a job's processes take is weighed while they run, on real processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from phalanx.zoo.memory import Scales, proportional_kb
from phalanx.zoo.reading import load_fault
from phalanx.zoo.runner import run_fault
from phalanx.zoo.schedule import Result
from phalanx.zoo.tables import heavier_than_set_aside

HEALTHY = """
title = "t"
framework = "torch"
healthy = true
split = "train"
[run]
launcher = "python"
command = [{python!r}, "train.py"]
world_size = 1
timeout_s = 60
layout = "merged"
"""
# two processes of 150 MB each, alive at the same time for longer than two looks
TWO_HEAVY = """
import os, time
forked = os.fork()
held = bytearray(os.urandom(1)) * (150 << 20)
time.sleep(4)
if forked: os.waitpid(forked, 0)
"""


def test_processes_of_a_job_are_weighed_together(tmp_path: Path) -> None:
    folder = tmp_path / "torch-heavy"
    folder.mkdir()
    (folder / "fault.toml").write_text(HEALTHY.format(python=sys.executable), encoding="utf-8")
    (folder / "train.py").write_text(TWO_HEAVY, encoding="utf-8")
    outcome = run_fault(load_fault(folder), None, tmp_path / "out")
    assert outcome.clean
    assert 300 <= outcome.peak_mb < 450


def test_the_greatest_sum_is_kept() -> None:
    here = [os.getpid()]
    scales = Scales(lambda: here, every_s=0.0)
    scales.look()
    first = scales.peak_mb
    assert first > 5
    here.clear()
    scales.look()
    assert scales.peak_mb == first


def test_a_process_that_is_gone_weighs_nothing() -> None:
    assert proportional_kb(2**22 + 1) == 0
    assert proportional_kb(os.getpid()) > 5_000


def test_a_job_that_took_more_than_was_set_aside_is_said() -> None:
    small = Result("torch-a", False, True, "", 1.0, "f", peak_mb=300, set_aside_mb=700)
    heavy = Result("torch-b", False, True, "", 1.0, "f", peak_mb=1900, set_aside_mb=700)
    said = list(heavier_than_set_aside([heavy, small]))
    assert said == ["torch-b took 1900 MB, 700 were set aside: say memory_mb in its [needs]"]
