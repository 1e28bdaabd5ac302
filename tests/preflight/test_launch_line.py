"""What a launch command tells: torchrun's options, mpirun's hosts, slots and variables; and what is wrong with it on so many hosts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.findings import explain
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.launch_line import read_launch_line
from phalanx.preflight.lint import launch_command
from phalanx.preflight.options import CheckOptions
from tests.preflight.made import host_facts

TWO = (host_facts("h1"), host_facts("h2"))


def cause_of(line: str, *all_facts: HostFacts) -> list[str]:
    """The causes that the rules find in what is said of a command."""
    read = read_launch_line(shlex.split(line))
    told = [HostFacts(one.label, one.host, one.ranks, _with(one, dict(read.variables))) for one in all_facts]
    found = launch_command.examine(told, CheckOptions(launch=read))
    explained = [explain(item.fact) for item in found if isinstance(item, CheckFact)]
    assert all(explained)
    return [one.cause for one in explained if one is not None]


def _with(one: HostFacts, variables: dict[str, str]) -> dict[str, object]:
    has = {**one.variables, **variables}
    return {**one.facts, "environment": {"variables": has, "others": []}}


@pytest.mark.parametrize(
    ("line", "causes"),
    [
        ("torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint h1:29400 train.py", []),
        ("torchrun --nnodes 2 --node-rank 1 --master-addr h1 train.py", []),
        ("torchrun --nnodes 2 --master-addr h1 train.py", ["node-rank-unset"]),
        ("torchrun --nnodes 2 train.py", ["launch-command-wrong"]),
        ("torchrun --nnodes 2 --rdzv-backend c10d train.py", ["launch-command-wrong"]),
        ("torchrun --nnodes 2 --standalone train.py", ["launch-command-wrong"]),
        ("torchrun --nnodes 2 --node-rank 2 --master-addr h1 train.py", ["launch-command-wrong"]),
        ("torchrun --nnodes 2 --rdzv-backend c10 --rdzv-endpoint h1 train.py", ["launch-command-wrong"]),
        ("torchrun --nnodes 1:2 --nproc-per-node all --rdzv-backend c10d --rdzv-endpoint h1 t.py", ["launch-command-wrong"]),
        ("mpirun -np 4 -H h1:2,h2:2 python train.py", []),
        ("mpirun -np 5 -H h1:2,h2:2 python train.py", ["slots-too-few"]),
        ("mpirun -np 5 --oversubscribe -H h1:2,h2:2 python train.py", []),
        ("mpirun -np 5 --map-by :OVERSUBSCRIBE -H h1:2,h2:2 python train.py", []),
        ("horovodrun -np 4 -H h1,h2 python train.py", ["slots-too-few"]),
        ("python train.py", []),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_command_on_two_hosts(line: str, causes: list[str]) -> None:
    assert cause_of(line, *TWO) == causes


def test_on_one_host_a_command_for_one_node_is_right() -> None:
    for line in ("torchrun --standalone --nproc-per-node 4 train.py", "torchrun --nproc-per-node gpu train.py"):
        assert cause_of(line, TWO[0]) == []


def test_on_one_host_a_command_for_several_nodes_must_say_where_they_meet() -> None:
    """The other nodes are not looked at, so what they are told, as their node rank, is not missed."""
    assert cause_of("torchrun --nnodes 2 train.py", TWO[0]) == ["launch-command-wrong"]
    assert cause_of("torchrun --nnodes 2 --standalone train.py", TWO[0]) == ["launch-command-wrong"]
    assert cause_of("torchrun --nnodes 2 --master-addr h1 train.py", TWO[0]) == []


def test_variables_and_hosts_of_mpirun(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# the nodes\nh1 slots=4\nh2 slots = 4 max_slots=8\n\nh3:2\n")
    line = read_launch_line(
        ["mpirun", "-np", "10", "--hostfile", str(file), "-x", "NCCL_DEBUG=INFO", "-x", "PATH", "--mca", "btl", "tcp,self", "python", "a.py"]
    )  # fmt: skip
    assert line.variables == {"NCCL_DEBUG": "INFO", "OMPI_MCA_btl": "tcp,self"}
    assert line.slots == {"h1": 4, "h2": 4, "h3": 2}
    assert (line.ranks, line.scripts, line.libraries) == (10, ("a.py",), {"mpi"})
    unchecked = list(launch_command.examine(TWO, CheckOptions(launch=line)))
    assert unchecked == [Unchecked("h3 of the launch command", "--hosts with it", essential=True)]


def test_interfaces_of_horovodrun() -> None:
    line = read_launch_line(shlex.split("horovodrun -np 2 --network-interfaces ib0 -H h1,h2 python a.py"))
    assert line.variables == {"HOROVOD_GLOO_IFACE": "ib0", "NCCL_SOCKET_IFNAME": "ib0"}
    assert line.libraries == {"horovod"}


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"MASTER_ADDR": "a"}, ("MASTER_ADDR", "a", 29500)),
        ({"PET_RDZV_ENDPOINT": "a", "PET_RDZV_BACKEND": "c10d"}, ("PET_RDZV_ENDPOINT", "a", 29400)),
        ({"PET_RDZV_ENDPOINT": "[fd77::a]:7", "MASTER_ADDR": "b"}, ("PET_RDZV_ENDPOINT", "fd77::a", 7)),
        ({"PET_RDZV_ENDPOINT": "a:7", "PET_RDZV_BACKEND": "etcd-v2"}, None),
        ({"PET_RDZV_ENDPOINT": "a:7", "MASTER_ADDR": "b", "TORCHELASTIC_RUN_ID": "1"}, ("MASTER_ADDR", "b", 29500)),
        ({"PET_MASTER_ADDR": "a", "PET_MASTER_PORT": "x"}, ("PET_MASTER_ADDR", "a", None)),
        ({"HOROVOD_GLOO_RENDEZVOUS_ADDR": "a", "HOROVOD_GLOO_RENDEZVOUS_PORT": "9"}, ("HOROVOD_GLOO_RENDEZVOUS_ADDR", "a", 9)),
        ({}, None),
    ],
)  # fmt: skip
def test_where_the_ranks_meet(variables: dict[str, str], place: tuple[str, str, int | None] | None) -> None:
    found = host_facts("h1", variables).place
    assert (None if found is None else (found.variable, found.address, found.number)) == place


def test_a_place_is_written_as_its_variable_wants_it() -> None:
    found = host_facts("h1", {"PET_RDZV_ENDPOINT": "a:7"}).place
    assert found is not None
    assert (found.written("10.0.0.1"), found.written("fd77::a")) == ("10.0.0.1:7", "[fd77::a]:7")
    assert (found.port_variable, found.written_port(8)) == ("PET_RDZV_ENDPOINT", "a:8")
    plain = host_facts("h1", {"MASTER_ADDR": "a"}).place
    assert plain is not None
    assert (plain.written("b"), plain.port_variable, plain.written_port(8)) == ("b", "MASTER_PORT", "8")


def test_torchruns_options_in_their_spellings() -> None:
    words = "torchrun --nnodes=2 --nproc_per_node 8 --node-rank 1 --master_addr n0 --master-port 1234 train.py --lr 1"
    line = read_launch_line(words.split())
    assert line.variables == {
        "PET_NNODES": "2", "PET_NPROC_PER_NODE": "8", "PET_MASTER_ADDR": "n0", "PET_MASTER_PORT": "1234"
    }  # fmt: skip
    assert line.scripts == ("train.py",)
    words = "python -m torch.distributed.run --rdzv-id 7 --rdzv-backend c10d --rdzv-endpoint n0 -m pkg.train"
    line = read_launch_line(words.split())
    assert line.variables == {"PET_RDZV_ID": "7", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "n0"}
    assert line.scripts == ()
    assert read_launch_line([]).variables == {}
