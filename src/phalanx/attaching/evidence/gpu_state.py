"""What nvidia-smi says of the GPUs that the ranks use: lost ones, uncorrectable errors, and who computes nothing.

0, 00000000:3B:00.0, 100, 71423, 82.11, 0
Unable to determine the device handle for GPU0000:5E:00.0: Unknown Error

How busy a GPU is proves nothing about a rank: a kernel of NCCL that waits for its peers keeps it at 100 %.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from phalanx.attaching.evidence import Piece, Scene
from phalanx.attaching.evidence.kernel_log import bus_of, gpus_of
from phalanx.model.bundle import DEVICES

_QUERY = "index,pci.bus_id,utilization.gpu,memory.used,power.draw,ecc.errors.uncorrected.volatile.total"
_ANSWER_S = 10.0  # a lost GPU may keep the driver, and with it nvidia-smi, waiting
_ADDRESS = re.compile(r"(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})")


def collect(scene: Scene) -> Iterator[Piece]:
    """One piece for this machine, where there is nvidia-smi and a rank uses a GPU."""
    program, gpus = shutil.which("nvidia-smi"), gpus_of(scene.job)
    if program is None or not gpus:
        return
    command = [program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        scene.notes.append(f"nvidia-smi on {scene.host} gives no answer within {_ANSWER_S:.0f} s: its driver hangs")
        return
    lines = list(lines_about(done.stdout + done.stderr, gpus))
    if lines:
        yield Piece(DEVICES.format(scene.host), f"nvidia-smi on {scene.host}", None, "\n".join(lines) + "\n")


def lines_about(output: str, gpus: Mapping[str, list[int]]) -> Iterator[str]:
    """What concerns the job's GPUs, with the rank's label where one rank uses the GPU."""
    for line in output.splitlines():
        address = _ADDRESS.search(line)
        ranks = gpus.get(bus_of(address["bus"]), []) if address is not None else []
        if not ranks:
            continue
        label = f"[rank{ranks[0]}]: " if len(ranks) == 1 else ""
        fields = [field.strip() for field in line.split(",")]
        if "Unable to determine" in line or "GPU is lost" in line:
            yield f"{label}{line.strip()}"
        elif len(fields) == 6:
            index, _, busy, memory, power, errors = fields
            yield f"{label}GPU {index}: {busy} % busy, {memory} MiB in use, {power} W"
            if errors.isdigit() and int(errors):
                yield f"{label}GPU {index}: {errors} times uncorrectable ECC error since the driver was loaded"
