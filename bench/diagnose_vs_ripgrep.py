"""Measures `phalanx diagnose` against ripgrep looking for the same rules' literals in the same files.

    python bench/diagnose_vs_ripgrep.py [--sizes 0.1 1 4] [--rounds 3]

Both run on one core, in turns, on logs of 256 ranks with one fault. Printed: processor seconds, their ratio, peak memory, the
verdict, how time grows with bytes, and with the number of rules.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from make_logs import CULPRIT, write_logs

HERE = Path(__file__).parent
_CHILD = """
import json, resource, sys, time
from phalanx.diagnosis import diagnose_inputs
from phalanx.knowledge import load_rules
from phalanx.sources import find_inputs
sys.path.insert(0, {here!r})
from rule_sets import rules_of_size
rules = rules_of_size({count})
start = time.process_time()
inputs, unchecked = find_inputs([{folder!r}])
report = diagnose_inputs(inputs, rules, unchecked)
seconds = time.process_time() - start
verdict = report.verdict
print(json.dumps({{"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
  "verdict": verdict and [verdict.symptom, list(verdict.culprit_ranks)], "rules": len(rules)}}))
"""


def pinned(command: list[str]) -> list[str]:
    """The command on one core, so that neither side gains from threads."""
    return ["taskset", "-c", "0", *command]


def run_phalanx(folder: Path, rules: int) -> dict[str, object]:
    """One run of the whole diagnosis in a fresh process; time without the interpreter's start."""
    code = _CHILD.format(here=str(HERE), folder=str(folder), count=rules)
    done = subprocess.run(
        pinned([sys.executable, "-c", code]), capture_output=True, text=True, check=True, timeout=1800
    )
    result: dict[str, object] = json.loads(done.stdout)
    return result


def child_seconds() -> float:
    """Processor seconds of all children until now: unlike the clock, they do not depend on who else is at work."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_phalanx_command(folder: Path) -> float:
    """The command as a user types it, start-up included."""
    start = child_seconds()
    subprocess.run(pinned([str(Path(sys.executable).parent / "phalanx"), "diagnose", str(folder), "-f", "json"]),
                   stdout=subprocess.DEVNULL, check=False, timeout=1800)  # fmt: skip
    return child_seconds() - start


def run_ripgrep(folder: Path, literals: Path) -> float:
    """ripgrep looking for the literals, on one thread, counting matches."""
    start = child_seconds()
    subprocess.run(pinned(["rg", "-j1", "--no-ignore", "-c", "-F", "-f", str(literals), str(folder)]),
                   stdout=subprocess.DEVNULL, check=False, timeout=1800)  # fmt: skip
    return child_seconds() - start


def main() -> None:
    from rule_sets import write_literals

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=float, nargs="+", default=[0.1, 1.0, 4.0], help="GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    arguments = parser.parse_args()
    if shutil.which("rg") is None:
        sys.exit("ripgrep is not installed: apt-get install ripgrep")
    with tempfile.TemporaryDirectory() as scratch:
        literals = Path(scratch) / "literals.txt"
        count = write_literals(literals, 0)
        print(
            f"{count} literals of the shipped rules; {os.cpu_count()} cores, one used; median of {arguments.rounds} rounds, in turns"
        )
        for size in arguments.sizes:
            folder = arguments.data / f"{size:g}g"
            complete = folder.with_name(f"{folder.name}.complete")  # an interrupted run leaves a part
            if not complete.exists():
                write_logs(folder, int(size * 2**30), 256)
                complete.touch()
            bytes_read = sum(path.stat().st_size for path in folder.iterdir())
            ours, whole, theirs, peak, verdict = [], [], [], 0.0, None
            for _ in range(arguments.rounds):
                theirs.append(run_ripgrep(folder, literals))
                result = run_phalanx(folder, 0)
                ours.append(float(str(result["seconds"])))
                whole.append(run_phalanx_command(folder))
                peak, verdict = max(peak, float(str(result["peak_mb"]))), result["verdict"]
            mine, rg, command = statistics.median(ours), statistics.median(theirs), statistics.median(whole)
            print(
                f"{bytes_read / 2**30:5.2f} GiB: phalanx {mine:6.2f} s (command {command:6.2f} s), ripgrep {rg:6.2f} s, "
                f"ratio {mine / rg:4.2f} (command {command / rg:4.2f}), {bytes_read / 2**20 / mine:5.0f} MiB/s, peak {peak:.0f} MB, "
                f"verdict {verdict} (truth: rank {CULPRIT})"
            )
        smallest = arguments.data / f"{arguments.sizes[0]:g}g"
        for rules in (50, 500):
            few = [run_phalanx(smallest, rules) for _ in range(arguments.rounds)]
            seconds = statistics.median(float(str(one["seconds"])) for one in few)
            write_literals(literals, rules)
            rg = statistics.median(run_ripgrep(smallest, literals) for _ in range(arguments.rounds))
            print(f"{rules:4d} rules on {arguments.sizes[0]:g} GiB: phalanx {seconds:.2f} s, ripgrep {rg:.2f} s")


if __name__ == "__main__":
    main()
