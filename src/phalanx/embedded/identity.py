"""Which rank of which job this process is: by its launcher's variables, or by what PyTorch or JAX says once it has met its peers."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.attaching.discovery import script_of
from phalanx.attaching.identity import Identity, identities_of

# What a scheduler says of a process of PyTorch's may be the place of its launcher: `srun python spawns_its_ranks.py`.
_OF_TORCH = ("torch",)
_SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_COMPLETION_INDEX", "TORCHELASTIC_RESTART_COUNT")


@dataclass(frozen=True, slots=True)
class Place:
    """A rank's place. `key` is equal for all ranks of the job, on all nodes."""

    rank: int
    size: int
    key: str
    here: int | None = None  # how many ranks of the job run on this node, where that is known

    @property
    def digest(self) -> str:
        """The key as a name for a file."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]


def place_now(variables: Mapping[str, str] = os.environ) -> Place | None:
    """This process's place as far as it is known now."""
    has_torch = "torch.distributed" in sys.modules
    for told in identities_of(variables):
        if told.size is not None and (not has_torch or told.launcher in _OF_TORCH or _has_other_framework()):
            return _place(told, variables)
    return _by_process_group(variables) if has_torch else _by_jax(variables)


def _has_other_framework() -> bool:
    return any(name in sys.modules for name in ("horovod", "tensorflow", "mpi4py"))


def _place(told: Identity, variables: Mapping[str, str]) -> Place:
    outer = "/".join(variables.get(name, "") for name in _SCHEDULERS)
    local = variables.get("LOCAL_WORLD_SIZE") or variables.get("OMPI_COMM_WORLD_LOCAL_SIZE")
    local = local or variables.get("HOROVOD_LOCAL_SIZE") or variables.get("MPI_LOCALNRANKS", "")
    here = int(local) if local.isdigit() else None
    return Place(told.rank, told.size or 1, f"{told.job}|{outer}", here)


def _by_process_group(variables: Mapping[str, str]) -> Place | None:
    """What PyTorch itself says, once it has a group."""
    distributed: Any = sys.modules.get("torch.distributed")
    if not getattr(distributed, "is_initialized", bool)():
        return None
    store = distributed.distributed_c10d._get_default_store()
    while (below := getattr(store, "underlying_store", None)) is not None:
        store = below
    where = f"{getattr(store, 'host', '')}:{getattr(store, 'port', '')}:{getattr(store, 'path', '')}"
    outer = "/".join(variables.get(name, "") for name in _SCHEDULERS)
    return Place(distributed.get_rank(), distributed.get_world_size(), f"group:{where}|{outer}")


def _by_jax(variables: Mapping[str, str]) -> Place | None:
    """What JAX itself says, once `jax.distributed.initialize()` is through."""
    state: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None:
        return None
    outer = "/".join(variables.get(name, "") for name in _SCHEDULERS)
    return Place(state.process_id, state.num_processes, f"jax:{state.coordinator_address}|{outer}")


def name_of_script() -> str:
    """What this process runs, for the name of a folder; a child of `mp.spawn` has its parent's script as `__mp_main__`."""
    spawned = getattr(sys.modules.get("__mp_main__"), "__file__", None)
    return Path(spawned or script_of(sys.orig_argv)).stem.lstrip("-. ") or "job"
