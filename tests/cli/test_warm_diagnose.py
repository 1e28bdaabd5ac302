"""A diagnosis that is got ready beforehand tells of the bundle as it is when it is asked for."""

from __future__ import annotations

import time
from pathlib import Path

from phalanx.run.verdict import Diagnosis

RAISES = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    f()\nKeyError: 'label'\n"


def bundle(tmp_path: Path) -> Path:
    (tmp_path / "manifest.json").write_text('{"schema": "phalanx.bundle/1", "size": 2, "framework": "torch"}')
    for rank in (0, 1):
        (tmp_path / "attempt0" / f"rank{rank}").mkdir(parents=True)
        (tmp_path / "attempt0" / f"rank{rank}" / "output.log").write_text("step 1 loss 2.0\n")
    return tmp_path


def test_what_came_after_it_was_got_ready_is_in_it(tmp_path: Path) -> None:
    made = Diagnosis(bundle(tmp_path))
    assert made.process.poll() is None
    time.sleep(0.5)
    with (tmp_path / "attempt0" / "rank1" / "output.log").open("a") as file:
        file.write(RAISES)
    report = made.ask().result()
    assert report is not None
    assert report["verdict"]["culprit_ranks"] == [1]


def test_one_that_nobody_asks_for_ends(tmp_path: Path) -> None:
    made = Diagnosis(bundle(tmp_path))
    made.abandon()
    assert made.process.poll() is not None
