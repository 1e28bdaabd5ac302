"""Measures the verdict from flight-recorder dumps against PyTorch's own analyzer, on the same synthetic jobs, in turns.

python bench/traces_vs_fr_trace.py --ranks 16 256 --rounds 3
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
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from make_traces import FAULTS, SHAPES, write_job

DATA = Path(__file__).parent / "data"
PEER = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace"]
PHALANX = [sys.executable, "-c", "from phalanx.cli import main; main()", "diagnose", "--format", "json"]
# Both as they are once installed: pip leaves PyTorch's modules compiled, so ours may be kept compiled, too.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Run:
    """What one run cost. Processor seconds are those of all its processes; memory is that of all of them at once."""

    seconds: float
    wall: float
    peak: int
    output: str
    finished: bool


def measure(command: list[str], limit: float, logs: bool = False) -> Run:
    """Run a command to its end or to the time limit. `logs`: what it has to say is in its log, on standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if logs else subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=ENVIRONMENT,
    )
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(process.pid, peak), daemon=True)
    watcher.start()
    try:
        output, _ = process.communicate(timeout=limit)
        finished = True
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        finished = False
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(seconds, time.monotonic() - began, peak[0], output, finished)


def _watch(pid: int, peak: list[int]) -> None:
    """The largest memory of a process and its children together: private pages, and shared ones once for each sharer's part."""
    while True:
        try:
            top = psutil.Process(pid)
            if top.status() == psutil.STATUS_ZOMBIE:
                return
            total = 0
            for one in [top, *top.children(recursive=True)]:
                try:
                    total += one.memory_full_info().pss
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue
            peak[0] = max(peak[0], total)
        except psutil.NoSuchProcess:
            return
        time.sleep(0.2)


def verdict_of(run: Run) -> str:
    """Whom Phalanx accuses, and of what."""
    try:
        verdict = json.loads(run.output)["verdict"]
    except (ValueError, KeyError):
        return "no report"
    return f"{verdict['cause']}, ranks {verdict['culprit_ranks']}" if verdict else "nothing wrong"


def peer_verdict_of(run: Run) -> str:
    """Whom the peer accuses, as far as its text says it."""
    if not run.finished:
        return "did not finish"
    named = sorted(
        {int(part.split(";")[0]) for part in run.output.split("Culprit rank ")[1:] if part.split(";")[0].isdigit()}
    )
    return f"accuses ranks {named[:8]}{' …' if len(named) > 8 else ''}" if named else "accuses nobody"


def compare(ranks: int, given: argparse.Namespace) -> None:
    """One size: make the job, run both in turns, print a line."""
    folder = DATA / f"traces-{ranks}"
    shutil.rmtree(folder, ignore_errors=True)
    truth = write_job(folder, ranks, given.fault, given.entries, seed=given.seed, flat=given.flat)
    own: list[Run] = []
    peer: list[Run] = []
    measure([*PHALANX, str(folder)], given.limit)  # compiles its modules and rules, once for all
    for _ in range(given.rounds):
        own.append(measure([*PHALANX, str(folder)], given.limit))
        if ranks <= given.peer_up_to:
            peer.append(measure([*PEER, str(folder), "--prefix", "nccl_trace_rank_"], given.limit, logs=True))
    if not given.keep:
        shutil.rmtree(folder)
    ours, theirs = (
        statistics.median(run.seconds for run in own),
        statistics.median([run.seconds for run in peer] or [0]),
    )
    line = f"{ranks:>6} ranks × {given.entries} calls, {truth['bytes'] / 2**20:.0f} MiB: phalanx {ours:.1f} s of processor ({own[0].wall:.0f} s), {max(run.peak for run in own) / 2**20:.0f} MiB; {verdict_of(own[0])}"  # type: ignore[operator]
    if peer:
        bound = "" if all(run.finished for run in peer) else "more than "
        line += f"\n{'':>13}fr_trace {bound}{theirs:.1f} s, {max(run.peak for run in peer) / 2**20:.0f} MiB; {peer_verdict_of(peer[0])}; {bound}{theirs / ours:.1f} times as long"
    print(f"{line}\n{'':>13}truth: {truth['fault']}, ranks {truth['ranks']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", choices=sorted(SHAPES), default=[16, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fault", choices=FAULTS, default="host-stall")
    parser.add_argument("--entries", type=int, default=2000, help="entries a rank")
    parser.add_argument(
        "--flat", action="store_true", help="without pipeline stages, where the peer does not give up early"
    )
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a run is ended")
    parser.add_argument("--peer-up-to", type=int, default=256, help="the most ranks that the peer is given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="keep the dumps in bench/data")
    given = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(
        f"{given.fault}{', flat' if given.flat else ''}; {cores} cores; median of {given.rounds} rounds, in turns",
        flush=True,
    )
    for ranks in given.ranks:
        compare(ranks, given)


if __name__ == "__main__":
    main()
