"""Where a slow rank spends its time."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from phalanx.model import Frame
from phalanx.model.facts import make_fact
from phalanx.run.observer import Observation
from phalanx.run.watch.slow_places import SlowPlaces, busy_at
from phalanx.run.watch.stacks import Thread

MINE = Frame("/job/train.py", 31, "load")
COLLECTIVE = Frame("/x/site-packages/torch/distributed/distributed_c10d.py", 9, "all_reduce")


def test_who_waits_in_a_collective_is_not_busy() -> None:
    assert busy_at(Thread("MainThread", True, (MINE,))) == "load() at train.py:31"
    assert busy_at(Thread("MainThread", True, (MINE, COLLECTIVE))) == ""


def test_the_line_of_a_real_process(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time\ndef load():\n    time.sleep(60)\nload()\n")
    process = subprocess.Popen([sys.executable, str(script)])
    places, now, end = SlowPlaces(), 0.0, time.monotonic() + 60
    try:
        while not places.place_of(2) and time.monotonic() < end:
            now += 2.0
            places.note(now, 2, process.pid)
            time.sleep(0.2)
    finally:
        process.kill()
        process.wait()
    assert places.place_of(2) == "load() at train.py:3"
    fact = make_fact("rank.slower", {"factor": "3.0", "share": "60%", "why": "it computes"}, ranks=(2,))
    seen = places.add_to(Observation("straggler", (2,), "", {}, (fact,)))
    assert "train.py:3" in seen.text
    assert seen.facts[0].fields["place"] == "load() at train.py:3"


def test_few_looks_tell_no_line() -> None:
    assert SlowPlaces().place_of(1) == ""
