"""What Ray is asked to set aside, and what is refused. Nothing is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.backends import ray
from phalanx.backends.backend import BackendError, Plan, Request


def plan(gpus: int | None = None, **options: object) -> Plan:
    return ray.plan(Request("train", 5, ("python3", "-m", "agent"), Path("/job"), gpus=gpus, options=options))


def test_each_node_sets_aside_what_its_workers_need() -> None:
    found = plan(gpus=2, nodes=2, cpus_per_worker=4, resources="fast:2,local")
    assert found.layout == (3, 2)
    assert found.notes == (
        "node 0: an actor with 12 CPU, 6 GPU, 2 fast, 1 local",
        "node 1: an actor with 8 CPU, 4 GPU, 2 fast, 1 local",
    )
    assert "each on a node of its own" in found.commands[0].purpose


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"address": "ray://head:10001"}, "ray job submit"),
        ({"resources": "fast:many"}, "name:amount"),
        ({"nodes": 9}, "cannot be spread"),
        ({"cpus_per_worker": 0}, "whole number from 1"),
    ],
)
def test_mistakes_are_told(options: dict[str, object], told: str) -> None:
    with pytest.raises(BackendError, match=told):
        plan(**options)
