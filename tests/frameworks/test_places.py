"""Variables of ranks on several nodes: local numbers, nodes and addresses are right in every framework's own words."""

from __future__ import annotations

import json

from phalanx.frameworks import horovod, mpi, tensorflow, torch
from phalanx.frameworks.launching import Meeting, Place, Seat

SEAT = Seat(3, 4, index=3, place=Place(node=1, nodes=2, local_rank=1, local_size=2))
MEETING = Meeting(
    ports=(5000, 5001, 5002, 5003),
    run_id="x",
    host="10.0.0.1",
    hosts=("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2"),
    roles=tuple(Seat(rank, 4, index=rank) for rank in range(4)),
    loopback="eth0",
    store_port=6000,
)


def test_torch() -> None:
    found = torch.variables(SEAT, MEETING)
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR")
    assert [found[name] for name in names] == ["3", "4", "1", "2", "1", "2", "10.0.0.1"]


def test_tensorflow() -> None:
    told = json.loads(tensorflow.variables(SEAT, MEETING)["TF_CONFIG"])
    assert told["cluster"]["worker"] == ["10.0.0.1:5000", "10.0.0.1:5001", "10.0.0.2:5002", "10.0.0.2:5003"]
    assert told["task"] == {"type": "worker", "index": 3}


def test_horovod() -> None:
    found = horovod.variables(SEAT, MEETING)
    names = ("HOROVOD_HOSTNAME", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE")
    assert [found[name] for name in names] == ["node1", "1", "2", "1", "2"]
    assert found["HOROVOD_GLOO_RENDEZVOUS_ADDR"] == "10.0.0.1"
    assert found["HOROVOD_GLOO_IFACE"] == "eth0"


def test_mpi() -> None:
    found = mpi.variables(SEAT, MEETING)
    assert (found["OMPI_COMM_WORLD_RANK"], found["OMPI_COMM_WORLD_LOCAL_RANK"], found["PMI_SIZE"]) == ("3", "1", "4")


def test_one_node_is_as_before() -> None:
    found = torch.variables(Seat(1, 2), Meeting(ports=(1,), run_id="x"))
    assert (found["LOCAL_RANK"], found["LOCAL_WORLD_SIZE"], found["GROUP_RANK"]) == ("1", "2", "0")
