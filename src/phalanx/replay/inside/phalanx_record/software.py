"""What a rank ran with: versions, processor, threads, switches of determinism, and its own source files."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from typing import Any

_PACKAGES = (
    "torch",
    "numpy",
    "tensorflow",
    "keras",
    "horovod",
    "torchvision",
    "transformers",
    "lightning",
    "accelerate",
)
_MOST_SOURCE = 4 * 1024 * 1024
# Variables that change how numbers come out, or how many threads make them.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "MKL_CBWR",
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TF_DETERMINISTIC_OPS",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_NUM_INTRAOP_THREADS",
    "ONEDNN_MAX_CPU_ISA",
    "PYTHONHASHSEED",
)


def software() -> dict[str, Any]:
    """Facts that can make a replay come out otherwise, as text or numbers."""
    found: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine(), "cpu": _processor()}
    for name in _PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    found |= {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch threads"] = torch.get_num_threads()
        found["instructions"] = torch.backends.cpu.get_cpu_capability()
        found["deterministic algorithms"] = torch.are_deterministic_algorithms_enabled()
        found["float32 products"] = torch.get_float32_matmul_precision()
        found["device"] = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def sources(folder: str) -> dict[str, str]:
    """The user's own modules that are loaded, by path below the script's folder, with the SHA-256 of each file."""
    found: dict[str, str] = {}
    if not folder:
        return found
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or not path.endswith(".py"):
            continue
        whole = os.path.abspath(path)
        inside = whole.startswith(folder + os.sep) and "site-packages" not in whole
        if inside and os.path.isfile(whole) and os.path.getsize(whole) <= _MOST_SOURCE:
            with open(whole, "rb") as file:
                found[whole[len(folder) + 1 :]] = hashlib.sha256(file.read()).hexdigest()
    return dict(sorted(found.items()))
