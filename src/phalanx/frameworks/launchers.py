"""What tells one launcher from another, most specific first."""

from __future__ import annotations

import re
from collections.abc import Mapping

LAUNCHERS: dict[str, re.Pattern[str]] = {
    "phalanx run": re.compile(r"^phalanx: \d+ ranks?\b.*a rank \("),
    "deepspeed": re.compile(r"deepspeed[./]launcher|\[launch\.py:\d+:|\bdeepspeed --"),
    "accelerate": re.compile(r"\baccelerate launch\b|accelerate/commands/launch"),
    "horovodrun": re.compile(r"\bhorovodrun\b|horovod/runner/|\[\d+\]<std(?:out|err)>"),
    "torchrun": re.compile(
        r"\btorchrun\b|torch/distributed/(?:run|launch|elastic)|torch\.distributed\.(?:run|launch|elastic)|\belastic_launch\b"
    ),
    "ray": re.compile(r"\(\w+ pid=\d+(?:, ip=[\d.]+)?\)|\bray::|\bray/(?:train|_private|tune)"),
    "lightning": re.compile(
        r"initializing distributed: GLOBAL_RANK|(?:pytorch_)?lightning/(?:fabric|pytorch|trainer)|pytorch_lightning"
    ),
    "mpirun": re.compile(r"\bmpirun\b|\bmpiexec\b|\bprterun\b|\[\d+,\d+\]<std(?:out|err)>|\borterun\b"),
    "srun": re.compile(r"\bsrun\b|\bslurmstepd\b|\bSLURM_"),
    "kubernetes": re.compile(r"\[pod/|\bkubectl\b|\bOOMKilled\b|\bPyTorchJob\b|\bMPIJob\b|\bTFJob\b"),
    "mp.spawn": re.compile(r"torch/multiprocessing/spawn\.py|\bmp\.spawn\b"),
}


def recognise_launcher(counts: Mapping[str, int]) -> str | None:
    """The launcher whose signs were seen; the first of the table where several were."""
    return next((name for name in LAUNCHERS if counts.get(name, 0) > 0), None)
