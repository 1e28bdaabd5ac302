"""Fault by fault: what `phalanx check` says of a broken bed, and what PyTorch says when a job is started on it, each with the seconds it took.

    python bench/check_vs_pytorch.py --write docs/lab.md        # root; about a minute and a half for each dozen of faults
    python bench/check_vs_pytorch.py firewall-drop mtu-tunnel   # some of them

The job is the smallest there is: init_process_group("gloo") and two all_reduce, of 4 bytes and of 4 MB, one rank a host, with PyTorch's own time-outs.
It is ended after --bound seconds. torch is imported once, and ranks are forked from there into the hosts' namespaces, so that its import is in no figure.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from phalanx.lab import Bed
from phalanx.lab.fault import find_fault, load_faults
from phalanx.lab.host import UNSET

# torchrun's variables, SSH and limits do not reach init_process_group.
NOT_A_JOB = {"nnodes-differs", "rendezvous-id-differs", "ssh-key", "ssh-host-key", "ssh-path", "docker0"}
SOURCE = Path(__file__).parent.parent / "src"
START, END = "<!-- table: bench/check_vs_pytorch.py -->", "<!-- end of table -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One fault's line."""

    name: str
    found: str
    check_s: float
    said: str
    torch_s: str


def fork_ranks() -> None:
    """Read requests, one JSON a line, and fork a rank for each. Runs as a process of its own, without threads."""
    import torch
    import torch.distributed

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("up", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if os.fork() == 0:
            be_a_rank(request, torch)


def be_a_rank(request: dict[str, Any], torch: Any) -> None:
    """Enter a host, meet, add up, and write down how it went; an alarm ends it if it does not."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.alarm(int(request["bound"]) + 1)
    os.close(1)
    for name in ("uts", "net", "mnt"):
        with open(f"/proc/{request['pid']}/ns/{name}", encoding="ascii") as file:  # noqa: PTH123
            if libc.setns(file.fileno(), 0) != 0:
                os._exit(3)
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        os.environ.pop(name, None)
    os.environ.update({name: value for name, value in request["variables"].items() if value != UNSET})
    began = time.monotonic()
    try:
        torch.distributed.init_process_group("gloo")
        torch.distributed.all_reduce(torch.ones(1))
        torch.distributed.all_reduce(torch.ones(1 << 20))
        said = "works"
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    told = {"rank": request["rank"], "said": said, "seconds": time.monotonic() - began}
    path = Path(request["result"])
    path.with_suffix(".new").write_text(json.dumps(told), encoding="utf-8")
    path.with_suffix(".new").rename(path)
    os._exit(0)


def run_torch(bed: Bed, start: Callable[[dict[str, Any]], None], bound: float, folder: Path) -> list[dict[str, Any]]:
    """What the ranks said within the bound."""
    files = []
    for host in bed:
        files.append(folder / f"{host.name}.json")
        start(
            {
                "pid": host.pid,
                "variables": host.variables,
                "rank": host.number,
                "bound": bound,
                "result": str(files[-1]),
            }
        )
    end = time.monotonic() + bound
    while time.monotonic() < end and not all(file.exists() for file in files):
        time.sleep(0.1)
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def in_short(told: list[dict[str, Any]], count: int, bound: float) -> tuple[str, str]:
    """The first complaint in a few words, and when it came."""
    failed = sorted((one for one in told if one["said"] != "works"), key=lambda one: one["seconds"])
    if not failed:
        silent = count - len(told)
        slowest = max((one["seconds"] for one in told), default=0.0)
        return (
            ("works", f"{slowest:.1f}")
            if not silent
            else (f"nothing; {silent} of {count} ranks hang", f"> {bound:.0f}")
        )
    words = " ".join(failed[0]["said"].split())
    for noise in ("[../third_party/", "[/__w/pytorch/pytorch/", "Exception raised from"):
        words = words.split(noise)[0] if words.split(noise)[0].strip(": ") else words
    hanging = f" ({count - len(told)} of {count} ranks hang on)" if len(told) < count else ""
    return words[:150].replace("|", "/") + hanging, f"{failed[0]['seconds']:.1f}"


def compare(name: str, start: Callable[[dict[str, Any]], None], bound: float, count: int) -> Row:
    """One fault on a bed of its own."""
    from tests.lab.beds import check_bed

    fault, chosen = find_fault(name)
    with ExitStack() as stack:
        bed = stack.enter_context(Bed(count))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fault.apply(bed, chosen)
        if name.startswith("ssh-"):
            with CHECKING:
                found, took = check_over_ssh(bed)
            return Row(name, found, took, "not run: it does not concern init_process_group", "")
        with CHECKING:
            report, took = check_bed(bed)
        first = report.findings[0] if report.findings else None
        found = in_words(first.title, first.cause, first.culprit_hosts) if first else "nothing"
        if name in NOT_A_JOB:
            return Row(name, found, took, "not run: it does not concern init_process_group", "")
        said, seconds = in_short(run_torch(bed, start, bound, folder), len(bed.hosts), bound)
        return Row(name, found, took, said, seconds)


def check_over_ssh(bed: Bed) -> tuple[str, float]:
    """The command line on h0, over the bed's own SSH servers; the time of the whole command."""
    began = time.monotonic()
    program = ["env", f"PYTHONPATH={SOURCE}", sys.executable, "-m", "phalanx", "check"]
    told = bed["h0"].run([*program, "--hosts", "h0,h1,h2", "--format", "json"], check=False).stdout
    took = time.monotonic() - began
    first = json.loads(told)["findings"][0]
    return in_words(first["title"], first["cause"], first["culprit_hosts"]), took


def in_words(title: str, cause: str, hosts: Sequence[str]) -> str:
    """What was found, shortly."""
    return f"{title} ({cause}: {', '.join(hosts) or 'nobody'})"


def table(rows: list[Row]) -> str:
    """As Markdown."""
    lines = ["| fault | `phalanx check` says | s | PyTorch says | s |", "| --- | --- | ---: | --- | ---: |"]
    for row in rows:
        took = f"{row.check_s:.1f}" if row.check_s else ""
        lines.append(f"| {row.name} | {row.found} | {took} | {row.said} | {row.torch_s} |")
    return "\n".join(lines)


def main() -> None:
    """Compare, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--bound", type=float, default=60.0)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument(
        "--at-once", type=int, default=12, help="jobs that hang at the same time; checks run one by one"
    )
    parser.add_argument("--write", type=Path)
    parser.add_argument("--fork-ranks", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fork_ranks:
        fork_ranks()
        return
    names = arguments.faults or [name for name, fault in load_faults().items() if fault.expected.found_by == "check"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    forker = subprocess.Popen(
        [sys.executable, __file__, "--fork-ranks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert forker.stdin is not None
    assert forker.stdout is not None
    stdin = forker.stdin
    assert forker.stdout.readline() == "up\n"

    def start(request: dict[str, Any]) -> None:
        with WRITING:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()

    with ThreadPoolExecutor(arguments.at_once) as pool:
        rows = list(pool.map(lambda name: compare(name, start, arguments.bound, arguments.hosts), names))
    stdin.close()
    forker.wait(30)
    made = table(rows)
    print(made)
    if arguments.write:
        text = arguments.write.read_text(encoding="utf-8")
        before, _, rest = text.partition(START)
        arguments.write.write_text(f"{before}{START}\n{made}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    import threading

    CHECKING, WRITING = threading.Lock(), threading.Lock()
    main()
