"""Sections `who` and `environment`: this host, this process, and the variables that matter to communication."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Setting

# Values are told of what steers communication, devices and launchers; of everything else the name only.
PREFIXES = (
    "NCCL_", "RCCL_", "GLOO_", "UCX_", "UCC_", "TF_", "HOROVOD_", "OMPI_", "PMIX_", "PMI_", "PRTE_", "PRRTE_", "MPI_", "MPICH_", "I_MPI_", "FI_",
    "MV2_", "TORCH_", "TORCHELASTIC_", "PET_", "PYTORCH_", "C10D_", "CUDA_", "HIP_", "ROCR_", "NVIDIA_", "OMP_", "MKL_", "KMP_", "GOMP_",
    "SLURM_", "GRPC_", "XLA_", "JAX_", "KERAS_", "DEEPSPEED_", "ACCELERATE_", "FSDP_", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "RDZV_", "RAY_",
    "MEGATRON_", "IBV_", "MLX", "EFA_", "AWS_OFI_", "BYTEPS_", "DMLC_", "SMDATAPARALLEL_", "OMPI_MCA_",
)  # fmt: skip
NAMES = frozenset(
    [
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE",
        "MASTER_ADDR", "MASTER_PORT", "NNODES", "NNODE", "NPROC_PER_NODE", "HOSTNAME", "PATH", "http_proxy", "https_proxy", "no_proxy",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy", "no_grpc_proxy", "RES_OPTIONS", "HOSTALIASES",
    ]
)  # fmt: skip
_LOOKS_LIKE_ONE = re.compile(
    r"(?i)ADDR|PORT$|IFNAME|RANK|WORLD|NNODE|NODE|RDZV|NCC|GLO+|SOCKET|HCA|_IB_|DEBUG|TF_?CON|HORO|OMPI|UCX|MASTER"
)
_SECRET = re.compile(
    r"(?i)pass(?:w|phrase|$)|secret|token|credential|api_?key|access_?key|private_?key|_key$|_auth$|cookie"
)


def who(setting: Setting) -> dict[str, Any]:
    """The host and the process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return {
        "hostname": socket.gethostname(),
        "pid": os.getpid(),
        "user": user,
        "uid": os.getuid(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "libc": "-".join(platform.libc_ver()),
        "boot": _first_line("/proc/sys/kernel/random/boot_id"),
        "network": _link("/proc/self/ns/net"),
        "folder": os.getcwd(),
        "time": time.time(),
        "load": list(os.getloadavg()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def environment(setting: Setting) -> dict[str, Any]:
    """Variables of communication with their values, and the names of all others."""
    shown = {}
    others = []
    for name, value in setting.environment.items():
        if not (name in NAMES or name.startswith(PREFIXES) or _LOOKS_LIKE_ONE.search(name)):
            others.append(name)
        elif _SECRET.search(name):
            shown[name] = "[redacted]"
        else:
            shown[name] = value[:20000]
    return {
        "variables": shown,
        "others": sorted(others),
        "files": {**nccl_files(setting.environment), **mca_files(setting.environment)},
    }


def nccl_files(variables: dict[str, str]) -> dict[str, dict[str, str]]:
    """What NCCL reads beside the environment, which goes before it: `NAME=VALUE` lines."""
    own = variables.get("NCCL_CONF_FILE") or os.path.join(os.path.expanduser("~"), ".nccl.conf")
    found = {}
    for path in (own, "/etc/nccl.conf"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                pairs = [line.strip().split("=", 1) for line in file.read(65536).splitlines() if "=" in line]
        except OSError:
            continue
        found[path] = {name: value for name, value in pairs if not name.startswith("#")}
    return found


def mca_files(variables: dict[str, str]) -> dict[str, dict[str, str]]:
    """Parameters of Open MPI from its files, under the names that they have as variables; the user's file goes before the system's."""
    home = variables.get("HOME") or os.path.expanduser("~")
    prefixes = [variables[name] for name in ("OPAL_PREFIX", "MPI_HOME", "OMPI_HOME") if variables.get(name)]
    places = [os.path.join(home, ".openmpi", "mca-params.conf")]
    places += [os.path.join(prefix, "etc", "openmpi-mca-params.conf") for prefix in prefixes]
    places.append("/etc/openmpi/openmpi-mca-params.conf")
    found = {}
    for path in places:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                pairs = [line.partition("#")[0].partition("=") for line in file.read(65536).splitlines()]
        except OSError:
            continue
        found[path] = {
            "OMPI_MCA_" + name.strip(): value.strip() for name, mark, value in pairs if mark and name.strip()
        }
    return found


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


FACTS = {"who": who, "environment": environment}
