"""Which rank a process is, by its launcher's variables."""

import json

import pytest

from phalanx.attaching.identity import identities_of

CLUSTER = {"worker": ["a:1", "b:1"], "chief": ["c:1"], "ps": ["d:1"]}


def tf_config(role: str, index: int) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": role, "index": index}})}


@pytest.mark.parametrize(
    ("variables", "launcher", "rank", "size"),
    [
        ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_PORT": "29500"}, "torch", 3, 4),
        ({"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, "torch", 1, 2),
        ({"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"}, "horovod", 1, 2),
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"}, "openmpi", 5, 8),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "mpich", 0, 2),
        ({"SLURM_PROCID": "7", "SLURM_NTASKS": "8"}, "slurm", 7, 8),
        ({"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "2"}, "jax", 1, 2),
        (tf_config("chief", 0), "tensorflow", 0, 4),
        (tf_config("worker", 1), "tensorflow", 2, 4),
        (tf_config("ps", 0), "tensorflow", 3, 4),
        (tf_config("evaluator", 0), "tensorflow", 4, 5),
    ],
)
def test_conventions(variables: dict[str, str], launcher: str, rank: int, size: int) -> None:
    first = identities_of(variables)[0]
    assert (first.launcher, first.rank, first.size) == (launcher, rank, size)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "general"},
        {"RANK": "4", "WORLD_SIZE": "4"},
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": '{"cluster": {}, "task": 3}'},
        {"TF_CONFIG": "[" * 100_000},
    ],
)
def test_what_is_no_rank(variables: dict[str, str]) -> None:
    assert identities_of(variables) == []


def test_two_jobs_have_two_keys() -> None:
    first, second = ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": port} for port in ("29500", "29501"))
    assert identities_of(first)[0].job != identities_of(second)[0].job
