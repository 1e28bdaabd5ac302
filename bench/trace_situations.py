"""Verdicts on traces of situations nobody tuned for: random groups, two faults at once, lost and cut dumps, rings, leftovers.

The truth is known because each job is made with its fault (`situations.py`). Counted: jobs in which exactly the broken ranks are
accused, for the right kind of fault, and ranks that are accused without guilt.

python bench/trace_situations.py --seeds 20
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from phalanx.diagnosis import diagnose_paths
from phalanx.model import Report
from situations import CIRCLE, SITUATIONS, Made, Truth


def judge(situation: Callable[[random.Random], Made], seed: int) -> tuple[bool, int, Report, Truth]:
    """Make it, diagnose it: whether the verdict is right, and how many innocents it accuses."""
    files, told = situation(random.Random(f"{situation.__name__} {seed}"))
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        report = diagnose_paths([folder])
    verdict = report.verdict
    accused = set(verdict.culprit_ranks) if verdict else set()
    kind = (verdict.cause in told.causes) if verdict else not told.causes
    # A circle that is said to be one accuses nobody; every other verdict on `either` has to name one.
    some = bool(accused) or (verdict is not None and verdict.cause == CIRCLE)
    exact = (accused <= told.either and some) if told.either else accused == told.ranks
    named = {rank for one in report.findings for rank in one.culprit_ranks}
    return kind and exact, len(named - told.ranks - told.either), report, told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", help="one situation, each miss shown")
    given = parser.parse_args()
    total = [0, 0, 0]
    for one in SITUATIONS:
        if given.only not in (None, one.__name__):
            continue
        hits = innocents = 0
        for seed in range(given.first, given.first + given.seeds):
            right, wrongly, report, told = judge(one, seed)
            hits += right
            innocents += wrongly
            if given.only and not right:
                found = report.verdict
                print(f"seed {seed}: {told}\n   {found.cause if found else None} {found.culprit_ranks if found else ''} {found.summary if found else ''}")  # fmt: skip
        total = [total[0] + hits, total[1] + given.seeds, total[2] + innocents]
        print(
            f"{one.__name__.replace('_', ' '):<34} {hits:>3} of {given.seeds}  innocents accused: {innocents}",
            flush=True,
        )
    print(f"{'all':<34} {total[0]:>3} of {total[1]}  innocents accused: {total[2]}")


if __name__ == "__main__":
    main()
    sys.exit(0)
