"""What the watch inside a rank sets and reads of PyTorch and the interpreter. Works with Python 3.8 and later."""

from __future__ import annotations

import os
import sys


def enable_faulthandler() -> None:
    """A rank that dies by a signal says where; a script that enables it itself overrules this."""
    import faulthandler

    if not faulthandler.is_enabled():
        faulthandler.enable(file=2)


def switch_recorder_on() -> None:
    """PyTorch before 2.8 records only when told how much. Later releases do by themselves, and warn of the old name."""
    version = getattr(sys.modules.get("torch.version"), "__version__", "")
    parts = str(version).split(".")[:2]
    if len(parts) == 2 and all(part.isdigit() for part in parts) and tuple(map(int, parts)) < (2, 8):
        os.environ.setdefault("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000")


def versions(rank: int) -> dict[str, str | int]:
    found: dict[str, str | int] = {"rank": rank, "python": sys.version.split()[0]}
    for name in (
        "torch",
        "tensorflow",
        "keras",
        "tf_keras",
        "horovod",
        "jax",
        "numpy",
        "lightning",
        "accelerate",
        "deepspeed",
        "transformers",
    ):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found


def counts(status: dict[str, str | int]) -> tuple[int, int, int]:
    enqueued, started, completed = (
        int(status.get(f"last_{word}_collective", -1)) for word in ("enqueued", "started", "completed")
    )
    return enqueued, started, completed
