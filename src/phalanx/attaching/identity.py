"""Which rank of which job a process is, from the variables that its launcher set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A rank's place in its job. `job` is equal for all ranks of one job on this machine and for no others."""

    launcher: str
    job: str
    rank: int
    size: int | None = None
    local_rank: int | None = None
    role: str = ""  # `ps 0`, where the framework has roles


@dataclass(frozen=True, slots=True)
class _Convention:
    """Variables by which a launcher tells a process its place; the first of `job` that are set make the job's key."""

    launcher: str
    rank: str
    size: str
    local_rank: str
    job: tuple[str, ...]


# What a framework reads comes before what a scheduler sets: under `srun torchrun` a worker has both.
_CONVENTIONS = (
    _Convention("torch", "RANK", "WORLD_SIZE", "LOCAL_RANK", ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")),
    _Convention(
        "horovod",
        "HOROVOD_RANK",
        "HOROVOD_SIZE",
        "HOROVOD_LOCAL_RANK",
        ("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
    ),
    _Convention("jax", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_LOCAL_DEVICE_IDS", ("JAX_COORDINATOR_ADDRESS",)),
    _Convention(
        "openmpi",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PRTE_JOBID"),
    ),
    _Convention("mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", ("PMI_PORT", "PMI_ID", "HYDI_CONTROL_FD")),
    _Convention("pmix", "PMIX_RANK", "", "", ("PMIX_NAMESPACE",)),
    _Convention("slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)
# In this order TensorFlow's own resolvers number the tasks of a cluster.
_ROLES = ("chief", "master", "worker", "ps", "evaluator")
_LARGEST = 1 << 20


def identities_of(variables: Mapping[str, str]) -> list[Identity]:
    """Every place that the variables name, what frameworks read first."""
    found = [one for convention in _CONVENTIONS if (one := _by_convention(convention, variables)) is not None]
    task = _by_tf_config(variables.get("TF_CONFIG", ""))
    if task is None:
        return found
    schedulers = [one for one in found if one.launcher in ("slurm", "pmix", "mpich", "openmpi")]
    return [*(one for one in found if one not in schedulers), task, *schedulers]


def _by_convention(convention: _Convention, variables: Mapping[str, str]) -> Identity | None:
    rank = _number(variables.get(convention.rank, ""))
    if rank is None:
        return None
    size = _number(variables.get(convention.size, ""))
    if size is not None and rank >= size:
        return None
    key = "/".join(variables.get(name, "") for name in convention.job)
    local = _number(variables.get(convention.local_rank, ""))
    return Identity(convention.launcher, f"{convention.launcher}:{key}", rank, size, local)


def _by_tf_config(text: str) -> Identity | None:
    if not text or len(text) > _LARGEST:
        return None
    try:
        told = json.loads(text)
        cluster, task = told["cluster"], told["task"]
        role, index = str(task["type"]), int(task["index"])
        counts = {str(name): len(members) for name, members in cluster.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    order = [*(name for name in _ROLES if name in counts), *sorted(counts.keys() - set(_ROLES))]
    if role not in counts:  # an evaluator stands outside of the cluster
        order.append(role)
        counts[role] = index + 1
    before = sum(counts[name] for name in order[: order.index(role)])
    key = json.dumps(cluster, sort_keys=True)
    return Identity("tensorflow", f"tensorflow:{key}", before + index, sum(counts.values()), role=f"{role} {index}")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else None
