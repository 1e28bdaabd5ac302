"""Open MPI's daemon: missing on a host, or under the prefix that mpirun is told."""

from __future__ import annotations

from typing import Any

import pytest

from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.launch_line import read_launch_line
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.probes.mpi_daemon import examine
from tests.preflight.made import host_facts, summary_of


def host(label: str, *found: str, **asked: bool) -> HostFacts:
    programs: dict[str, Any] = {name: f"/opt/mpi/bin/{name}" for name in found}
    return host_facts(
        label, programs={**programs, "asked": {f"/opt/mpi/bin/{name}": there for name, there in asked.items()}}
    )


def look(command: str, *hosts: HostFacts) -> list[str]:
    options = CheckOptions(launch=read_launch_line(command.split()))
    return [summary_of(one) for one in examine(hosts, options)]  # type: ignore[arg-type]


def test_a_host_whose_shell_does_not_find_it() -> None:
    hosts = [host("h0", "mpirun", "orted"), host("h1"), host("h2", "orted")]
    assert look("mpirun -np 3 python train.py", *hosts) == [
        "The shell of h1 does not find orted, which mpirun of h0 starts there."
    ]


@pytest.mark.parametrize("command", ["mpirun --prefix /opt/mpi/ -np 2 train", "/opt/mpi/bin/mpirun -np 2 train"])
def test_a_prefix_that_a_host_lacks(command: str) -> None:
    hosts = [host("h0", orted=True, prted=False), host("h1", orted=False, prted=False)]
    assert look(command, *hosts) == ["mpirun is told --prefix /opt/mpi, and h1 has no /opt/mpi/bin/orted."]


def test_without_mpirun_nothing_is_said() -> None:
    hosts = [host("h0", "mpirun", "prted"), host("h1")]
    assert look("torchrun --nnodes 2 train.py", *hosts) == []
    assert look("mpirun -np 2 train", host("h0"), host("h1")) == []
