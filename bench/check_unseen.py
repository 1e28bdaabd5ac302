"""Scores `phalanx check` on beds that it was not made for: how many faults are found, who is accused wrongly, and what healthy beds give.

python bench/check_unseen.py                # root; all of tests/preflight/unseen_*.py, one line each
python bench/check_unseen.py proxy-resets   # some of them
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.preflight import unseen_more, unseen_networks, unseen_settings  # noqa: F401 (they write their beds into BEDS)
from tests.preflight.unseen import BEDS, look_at, verdict_on

from phalanx.lab import LabError

BUSY = ("busy-with-many-connections",)  # healthy beds that are also tried on a loaded machine


def main() -> None:
    """Look at all, print a line for each and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("beds", nargs="*")
    parser.add_argument("--evidence", action="store_true", help="what was said, in full")
    arguments = parser.parse_args()
    counted: dict[str, int] = {}
    for name in arguments.beds or BEDS:
        unseen = BEDS[name]
        try:
            report, took = look_at(unseen, 2 * (os.cpu_count() or 1) if name in BUSY else 0)
        except LabError as error:
            counted["NO BED"] = counted.get("NO BED", 0) + 1
            print(f"{'NO BED':12} {name:48} {error}", flush=True)
            continue
        verdict = verdict_on(unseen, report)
        counted[verdict] = counted.get(verdict, 0) + 1
        told = "; ".join(f"{one.cause} ({', '.join(one.culprit_hosts)})" for one in report.findings) or "nothing"
        print(f"{verdict:12} {name:48} {took:5.1f} s  {told}", flush=True)
        if arguments.evidence:
            for finding in report.findings:
                print(f"{'':13}{finding.evidence[0].text}")
                print("".join(f"{'':15}fix {fix.title}: {fix.do}\n" for fix in finding.fixes), end="")
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counted.items())))


if __name__ == "__main__":
    main()
