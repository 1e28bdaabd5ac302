"""After `pytest` has failed: the failed tests once more, one after the other with nothing beside them.

Many tests watch real jobs and real networks, and three of them at a time share two cores. A few that failed in such company are asked again alone, and
named either way; one that fails alone too has failed, and more than a few are no accident.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
FEW = 3


def failed_tests(file: Path = LAST_FAILED) -> list[str]:
    """What pytest noted; nothing where it ended before it could."""
    try:
        return sorted(json.loads(file.read_text()))
    except (OSError, ValueError):
        return []


def run_alone(names: Sequence[str], most: int = FEW) -> int:
    """The exit status: 0 if there were few and all of them pass now."""
    if not names or len(names) > most:
        print(f"{len(names)} tests failed: not run again", file=sys.stderr)
        return 1
    print("failed beside others, run again alone:", *names, sep="\n  ", file=sys.stderr, flush=True)
    ended = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *names])
    word = "passed alone, and failed beside others" if ended.returncode == 0 else "failed alone too"
    print(f"{word}:", *names, sep="\n  ", file=sys.stderr)
    return ended.returncode


def main(status: int) -> int:
    """Any status but that of failed tests (an interrupt, an error of pytest itself) is handed on."""
    return run_alone(failed_tests()) if status == pytest.ExitCode.TESTS_FAILED else status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
