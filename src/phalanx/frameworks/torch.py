"""PyTorch."""

import re

NAME = "torch"
SIGNS = re.compile(
    r"\btorch[./\\]|\bc10d?\b|ProcessGroup(?:NCCL|Gloo)|\btorchrun\b|\bPyTorch\b|\bimport torch\b|\[rank\d+\]:", re.I
)
OUTRANKS: tuple[str, ...] = ()
