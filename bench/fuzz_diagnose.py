"""Hands `phalanx diagnose` mangled pieces of real logs, as files in folders, and checks what comes out.

    python bench/fuzz_diagnose.py [--seconds 60] [--seed 0] [--only NUMBER] [--keep FOLDER]

Every case is made from the seed and its number, so that `--only` makes it again. A case fails if anything is raised, if it takes
longer or needs more memory than its size allows, if the JSON breaks the contract, or if an output holds what a terminal or a browser would act on.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz_cases import make_case
from fuzz_checks import check_outputs
from phalanx.diagnosis import diagnose_paths

_MEMORY = (
    3 * 2**30
)  # of addresses: Hyperscan's tables and Python take one; more ends in a MemoryError, and the case is told
_PATIENCE, _PATIENCE_PER_MB = 4.0, 12.0  # processor seconds; a rule's expression that blows up takes minutes


def run_case(seed: int, number: int, folder: Path) -> str:
    """What is wrong with one case, nothing if all is well; its files stay in the folder."""
    size = make_case(random.Random(f"{seed}/{number}"), folder)
    start = time.process_time()
    try:
        report = diagnose_paths([str(folder)])
        seconds = time.process_time() - start
        check_outputs(report)
    except Exception:
        return traceback.format_exc()
    allowed = _PATIENCE + _PATIENCE_PER_MB * size / 2**20
    return "" if seconds <= allowed else f"took {seconds:.1f} s of processor time for {size} bytes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="processor time in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--keep", type=Path, help="copy the files of failing cases here")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    number, failed, longest = arguments.only or 0, 0, (0.0, -1)
    while time.process_time() < arguments.seconds:
        with tempfile.TemporaryDirectory() as scratch:
            start = time.process_time()
            wrong = run_case(arguments.seed, number, Path(scratch))
            longest = max(longest, (time.process_time() - start, number))
            if wrong:
                failed += 1
                print(f"case {number} of seed {arguments.seed}: {wrong}", flush=True)
                if arguments.keep is not None:
                    shutil.copytree(scratch, arguments.keep / f"{arguments.seed}-{number}", dirs_exist_ok=True)
        number += 1
        if arguments.only is not None:
            break
    seconds = time.process_time()
    print(
        f"{number} cases in {seconds:.0f} s of processor time, {failed} failed; the longest took {longest[0]:.1f} s (case {longest[1]})"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
