"""The bundle that a watched job leaves behind: which file holds what. Writers and readers both go by this.

phalanx-runs/20260301-141502-train/
  manifest.json           what was run, how, by which version; rewritten whole when something changes
  report.json             the verdict, in the report's form, once there is one
  attempt0/               one folder for each start of the job
    watch.jsonl           what the watch saw, one JSON object a line: stalls, deaths, stragglers, the network
    samples.jsonl         CPU, memory, I/O by rank and time
    job.log               output that all ranks write into one file, its end; ras.txt, kernel-HOST.log, devices-HOST.log: what NCCL RAS,
                          the kernel and nvidia-smi said of the job (`phalanx attach`)
    rank3/
      output.log          both streams, in the order of arrival
      process.json        pid, host, start, role
      versions.json       versions of Python and the frameworks, as the rank told them
      environment.json    its variables, secrets redacted
      exit.json           how it ended: code or signal, when, who ended it, why as far as is known
      error.json          PyTorch's own record of an exception, where the script asks for one
      stacks-1.txt        its stacks at the first snapshot (a stall or a death), dataloader workers included
      native-1.txt        its native stacks, taken a little later
      collectives-1.json  its flight recorder at that snapshot
      heartbeat           the record that the rank itself keeps while it runs
      record/             its recording, where one was asked for (docs/replay.md)
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

SCHEMA = "phalanx.bundle/1"
MANIFEST = "manifest.json"
REPORT = "report.json"
WATCH = "watch.jsonl"
SAMPLES = "samples.jsonl"
OUTPUT = "output.log"
JOB_OUTPUT = "job.log"
RAS = "ras.txt"
KERNEL = "kernel-{}.log"
DEVICES = "devices-{}.log"
BESIDE_RANKS = ("job*.log", "ras.txt", "kernel-*.log", "devices-*.log")  # evidence that is of no single rank
PROCESS = "process.json"
ENVIRONMENT = "environment.json"
EXIT = "exit.json"
HEARTBEAT = "heartbeat"
RECORD = "record"
RUNNING = ".running"  # there, and locked, while the job runs
RECORD_REQUEST = "write-recording"  # in the attempt's folder: its appearance asks ranks to write what they hold

_ATTEMPT = re.compile(r"attempt(\d+)")


def attempt_folder(bundle: Path, attempt: int) -> Path:
    """Where one start of the job keeps its files."""
    return bundle / f"attempt{attempt}"


def rank_folder(attempt: Path, rank: int) -> Path:
    """Where one rank of an attempt keeps its files."""
    return attempt / f"rank{rank}"


def stacks_file(number: int) -> str:
    """Name of the stacks taken at a snapshot."""
    return f"stacks-{number}.txt"


def collectives_file(number: int) -> str:
    """Name of the flight recorder's dump taken at a snapshot."""
    return f"collectives-{number}.json"


def is_held(bundle: Path) -> bool:
    """Whether somebody still writes the bundle: they hold a lock that goes with their process."""
    try:
        descriptor = os.open(bundle / RUNNING, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def attempts_of(bundle: Path) -> list[Path]:
    """The attempts' folders, oldest first."""
    found = [(int(match[1]), path) for path in bundle.iterdir() if (match := _ATTEMPT.fullmatch(path.name))]
    return [path for _, path in sorted(found)]
