"""What each framework's ranks find in their environment."""

from __future__ import annotations

import json

import pytest

from phalanx.frameworks.launching import Meeting, load_launchable, seats_of, serves

VARIABLES_OF_TORCHRUN = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
}  # fmt: skip


def variables(name: str, size: int, roles: dict[str, int] | None = None, **more: object) -> list[dict[str, str]]:
    seats = seats_of(size, roles or {})
    framework = load_launchable()[name]
    ports = tuple(range(4000, 4000 + framework.ports_needed(len(seats))))
    meeting = Meeting(ports, "run", roles=seats, store_port=5000, **more)  # type: ignore[arg-type]
    return [framework.variables(seat, meeting) for seat in seats]


def test_torch_has_all_that_torchrun_sets() -> None:
    ranks = variables("torch", 3, attempt=1, max_restarts=2)
    assert set(ranks[0]) == VARIABLES_OF_TORCHRUN
    assert [one["RANK"] for one in ranks] == ["0", "1", "2"]
    assert {(one["WORLD_SIZE"], one["MASTER_PORT"], one["TORCHELASTIC_RESTART_COUNT"]) for one in ranks} == {
        ("3", "4000", "1")
    }


def test_tensorflow_workers_share_a_cluster_and_differ_in_their_task() -> None:
    configs = [json.loads(one["TF_CONFIG"]) for one in variables("tensorflow", 2)]
    assert configs[0]["cluster"] == configs[1]["cluster"] == {"worker": ["127.0.0.1:4000", "127.0.0.1:4001"]}
    assert [one["task"] for one in configs] == [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}]


def test_tensorflow_roles_and_an_evaluator_outside_of_the_cluster() -> None:
    configs = [
        json.loads(one["TF_CONFIG"])
        for one in variables("tensorflow", 0, {"evaluator": 1, "ps": 1, "worker": 2, "chief": 1})
    ]
    tasks = [(one["task"]["type"], one["task"]["index"]) for one in configs]
    assert tasks == [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    assert set(configs[0]["cluster"]) == {"chief", "worker", "ps"}


def test_a_single_worker_gets_no_cluster() -> None:
    assert variables("tensorflow", 1) == [{}]


@pytest.mark.parametrize(("backend", "shows"), [("torch", "MASTER_PORT"), ("jax", "JAX_COORDINATOR_ADDRESS"), ("tensorflow", "TF_CONFIG")])  # fmt: skip
def test_keras_meets_as_its_backend_does(backend: str, shows: str) -> None:
    assert shows in variables("keras", 2, environment={"KERAS_BACKEND": backend})[1]


def test_horovod_finds_the_store() -> None:
    first = variables("horovod", 2)[0]
    assert first["HOROVOD_GLOO_RENDEZVOUS_PORT"] == "5000"
    assert first["HOROVOD_CONTROLLER"] == "gloo"


def test_jax_and_mpi_style() -> None:
    assert variables("jax", 2)[1]["OMPI_COMM_WORLD_RANK"] == "1"
    assert variables("mpi", 4)[3]["PMI_RANK"] == "3"


def test_who_serves_until_the_others_are_done() -> None:
    with_chief = seats_of(0, {"chief": 1, "worker": 2, "ps": 1})
    assert [serves(seat, with_chief) for seat in with_chief] == [False, True, True, True]
    workers = seats_of(2, {})
    assert not any(serves(seat, workers) for seat in workers)
