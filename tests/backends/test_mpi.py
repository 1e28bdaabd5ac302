"""The words for mpirun, of both kinds, and what is refused. Nothing is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.backends import mpi
from phalanx.backends.backend import BackendError, Request


def words(**options: object) -> tuple[str, ...]:
    asked = Request(
        "train", 4, ("python3", "-m", "agent"), Path("/job"), environment={"B": "x; $(id)", "A": "1"}, token="very-secret",
        options=options,
    )  # fmt: skip
    (command,) = mpi.plan(asked).commands
    assert command.environment == {"B": "x; $(id)", "A": "1"}  # values travel in the environment, never as words
    assert "very-secret" not in str(command)
    return command.argv


def test_open_mpi_starts_one_unbound_agent_a_host() -> None:
    found = words(hosts="a,b")
    assert found[:11] == (
        "mpirun", "-n", "2", "--bind-to", "none", "--map-by", "ppr:1:node", "--host", "a,b", "-x", "A",
    )  # fmt: skip
    assert found[found.index("python3") :][:5] == ("python3", "-m", "agent", "--node-in", "OMPI_COMM_WORLD_RANK")


def test_mpich_has_words_of_its_own() -> None:
    found = words(hosts="a,b", implementation="mpich", mpirun="/opt/mpiexec")
    assert found[:2] == ("/opt/mpiexec", "-disable-auto-cleanup")
    assert found[2:10] == ("-n", "2", "-ppn", "1", "-hosts", "a,b", "-genvlist", "A,B")
    assert "PMI_RANK" in found


def test_several_agents_on_this_machine_and_words_of_the_users() -> None:
    assert words(nodes=2)[5:7] == ("--map-by", ":OVERSUBSCRIBE")
    found = words(hostfile="/my hosts", nodes=2, arguments='--mca oob_tcp_if_include "eth 0"')
    assert found[found.index("--hostfile") + 1] == "/my hosts"
    assert found[found.index("--mca") + 2] == "eth 0"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"hosts": "a;reboot"}, "no name of a host"),
        ({"hosts": "--mca"}, "no name of a host"),
        ({"hosts": "a,$(id)"}, "no name of a host"),
        ({"hosts": "a,b", "nodes": 3}, "leave nodes out"),
        ({"nodes": 9}, "cannot be spread"),
        ({"implementation": "lam"}, "openmpi or mpich"),
    ],
)
def test_mistakes_are_told(options: dict[str, object], told: str) -> None:
    with pytest.raises(BackendError, match=told):
        words(**options)


def test_a_job_that_goes_on_without_a_host() -> None:
    assert mpi.without({"hosts": "a,b,c"}, ("b",)) == {"hosts": "a,c"}
    assert mpi.without({"nodes": 3}, ("here", "here#1")) == {"nodes": 1}
