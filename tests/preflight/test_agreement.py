"""Which libraries a job uses, by what the user says and by what the hosts have."""

from __future__ import annotations

import pytest

from phalanx.preflight.agreement import uses_only_gloo
from tests.preflight.made import host_facts


@pytest.mark.parametrize(
    ("chosen", "variables", "gpus", "expected"),
    [
        ("", {"MASTER_ADDR": "h0"}, 0, True),
        ("", {"MASTER_ADDR": "h0"}, 8, False),
        ("", {"NCCL_DEBUG": "INFO"}, 0, False),
        ("", {"TF_CONFIG": "{}"}, 0, False),
        ("", {"OMPI_COMM_WORLD_SIZE": "2"}, 0, False),
        ("gloo", {}, 8, True),
        ("torch", {}, 8, False),
        ("torch", {}, 0, True),
        ("torch gloo", {}, 8, True),
        ("gloo nccl", {}, 0, False),
        ("mpi", {}, 0, False),
    ],
)
def test_uses_only_gloo(chosen: str, variables: dict[str, str], gpus: int, expected: bool) -> None:
    hosts = [host_facts("h0", variables), host_facts("h1", variables, limits={"gpus": gpus})]
    assert uses_only_gloo(hosts, frozenset(chosen.split())) == expected
