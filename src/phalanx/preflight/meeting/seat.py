"""What a launcher tells a process of its place, and which way to meet follows from that."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Rank, size and the number of ranks on this host, by launcher; a pair holds if both are numbers.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
    ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"),
    ("PET_NODE_RANK", "PET_NNODES", ""),  # nodes that torchrun is to start ranks on
)
_JOB = (
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "PMIX_NAMESPACE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
)  # and not MASTER_ADDR, MASTER_PORT or WORLD_SIZE: what may be wrong must not keep ranks from meeting


@dataclass(frozen=True, slots=True)
class Seat:
    """A process among others. `local` is how many of them are on this host, None if nobody says."""

    rank: int
    size: int
    local: int | None
    job: str
    store: tuple[str, int] | None = None
    store_is_up: bool = False  # torchrun's agent listens there already

    is_node: bool = False  # it stands for a node, before torchrun has numbered the ranks

    @property
    def is_local(self) -> bool:
        """Whether all ranks are on this host."""
        return self.local is not None and self.local >= self.size


def seat_of(variables: Mapping[str, str]) -> Seat | None:
    """The place of this process; None if no launcher tells of others."""
    if variables.get("PET_RDZV_ENDPOINT"):  # the rendezvous numbers the nodes
        variables = {"PET_NODE_RANK": "0", **variables}
    for rank_name, size_name, local_name in _LAUNCHERS:
        rank, size = variables.get(rank_name, ""), variables.get(size_name, "")
        if not (rank.isdigit() and size.isdigit() and int(size) > 1):
            continue
        local = variables.get(local_name, "")
        return Seat(
            rank=int(rank),
            size=int(size),
            local=int(local) if local.isdigit() else None,
            job=_job(variables),
            store=_store(variables),
            is_node=rank_name == "PET_NODE_RANK",
            store_is_up=variables.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() in ("true", "1"),
        )
    return None


def _store(variables: Mapping[str, str]) -> tuple[str, int] | None:
    """Where the job would meet: by the ranks' own variables, or by what torchrun is told on the nodes."""
    endpoint, mark, end = variables.get("PET_RDZV_ENDPOINT", "").rpartition(":")
    told = (
        (variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", "")),
        (variables.get("PET_MASTER_ADDR", ""), variables.get("PET_MASTER_PORT", "29500")),
        (endpoint.strip("[]"), end) if mark else (end, "29400"),
    )
    return next(((address, int(port)) for address, port in told if address and port.isdigit()), None)


def _job(variables: Mapping[str, str]) -> str:
    """Equal for the ranks of one job, and of no other that runs beside it."""
    told = "|".join(variables.get(name, "") for name in _JOB)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def local_folder(seat: Seat) -> Path:
    """Where ranks of one host meet: the launcher that started them is the parent of all."""
    return Path(tempfile.gettempdir(), f"phalanx-check-{os.getuid()}-{os.getppid()}-{seat.job}")
