"""The picture of the score is well-formed and holds what the marks say."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from phalanx.zoo.fault import Fault, RunPlan
from phalanx.zoo.picture import draw
from phalanx.zoo.score import mark

PLAN = RunPlan("torchrun", ("torchrun",), 4, 10.0, "merged")


def test_bars_are_as_long_as_the_shares() -> None:
    faults = [
        Fault(
            Path(f"torch-{n}"),
            "t",
            "torch",
            False,
            "test",
            PLAN,
            symptom="perf.hang",
            cause="x",
            accepted_fixes=("other",),
        )
        for n in range(4)
    ]
    right = {"verdict": {"symptom": "perf.hang", "cause": "x", "culprit_ranks": [], "fixes": []}}
    marks = [mark(faults[0], right), *(mark(fault, None) for fault in faults[1:])]
    tree = ElementTree.fromstring(draw(marks))
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "perf.hang" in texts
    assert "25% / 0%" in texts
    widths = [element.get("width") for element in tree.iter("{http://www.w3.org/2000/svg}rect")]
    assert "85.0" in widths  # a quarter of the full length of 340
