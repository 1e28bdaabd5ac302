"""Each node's own launch command: what differs between the nodes is found before they are started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phalanx.cli import app
from phalanx.lab import Bed
from phalanx.preflight.node_commands import node_commands
from tests.lab.beds import each, needs_beds

HOSTS = ["h0", "h1", "h2"]


def commands(**changed: str) -> list[str]:
    given = {host: f"torchrun --nnodes 3 --node-rank {host[1]} --master-addr h0 train.py" for host in HOSTS}
    return [f"{host}: {command}" for host, command in (given | changed).items()]


def test_commands_are_told_from_ways_to_reach_a_host(tmp_path: Path) -> None:
    found, rest = node_commands([*commands(), "kubectl exec -i {host} --"], HOSTS)
    assert rest == ["kubectl exec -i {host} --"]
    assert found["h2"].variables["PET_NODE_RANK"] == "2"
    file = tmp_path / "commands"
    file.write_text("# the nodes\n" + "\n".join(commands()) + "\n")
    assert node_commands([f"@{file}"], HOSTS)[0] == found


def test_settings_before_the_program_count() -> None:
    found, _ = node_commands(["h0: NCCL_DEBUG=INFO torchrun --nnodes=2 a.py"], HOSTS)
    assert found["h0"].variables == {"NCCL_DEBUG": "INFO", "PET_NNODES": "2"}


def test_a_host_that_is_not_examined_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "commands"
    file.write_text("h9: torchrun a.py\n")
    with pytest.raises(ValueError, match="h9"):
        node_commands([f"@{file}"], HOSTS)


@needs_beds
@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, None),
        ({"h2": "torchrun --nnodes 4 --node-rank 2 --master-addr h0 train.py"}, "nnodes-differs"),
        ({"h2": "torchrun --nnodes 3 --node-rank 1 --master-addr h0 train.py"}, "node-rank-duplicate"),
        (
            {
                host: f"torchrun --nnodes 3 --rdzv-id {7 if host == 'h2' else 8} --rdzv-backend c10d --rdzv-endpoint h0 a.py"
                for host in HOSTS
            },
            "rendezvous-id-differs",
        ),
    ],
)
def test_what_differs_between_the_commands_is_found(changed: dict[str, str], cause: str | None) -> None:
    with Bed(3) as bed:
        ways = [item for host in bed for item in ("--each", each(host))]
        told = [item for command in commands(**changed) for item in ("--each", command)]
        arguments = ["check", "--hosts", "h[0-2]", *ways, *told, "--python", sys.executable, "--no-network"]
        done = CliRunner().invoke(app, [*arguments, "--format", "json"])
    causes = [one["cause"] for one in json.loads(done.output)["findings"]]
    assert causes[:1] == ([cause] if cause else [])
