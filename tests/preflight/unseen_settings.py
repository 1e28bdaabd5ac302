"""Unseen beds, second part: what stands in variables, names and launch commands."""

from __future__ import annotations

import json
import sys

from phalanx.lab import Bed
from phalanx.lab.host import UNSET
from phalanx.lab.services import change_name, keep
from phalanx.preflight.options import CheckOptions
from tests.preflight.unseen import broken, healthy

_JOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def without_torch(bed: Bed) -> None:
    """No variables of a torch job."""
    bed.set_variables(dict.fromkeys(_JOB, UNSET))


def with_tf(bed: Bed, *members: str, index: object = None, quoted: bool = True) -> None:
    """TF_CONFIG with one worker a host."""
    without_torch(bed)
    listed = list(members) or [f"{host.name}:2222" for host in bed]
    for host in bed:
        task = {"type": "worker", "index": host.number if index is None else index}
        config = json.dumps({"cluster": {"worker": listed}, "task": task})
        host.variables["TF_CONFIG"] = config if quoted else config.replace('"', "'")


@broken("firewall-task-port|firewall-drops|tf-port-blocked", hosts="h1")
def port_of_a_worker_dropped(bed: Bed) -> None:
    with_tf(bed)
    bed["h1"].filter("tcp dport 2222 drop")


@broken("tf-endpoint-unresolvable", hosts="h0")
def worker_unknown_to_one_host(bed: Bed) -> None:
    with_tf(bed, "h0:2222", "h1:2222", "trainer-two:2222")
    for host in bed:
        if host.name != "h0":
            change_name(host, f"{bed['h2'].address} trainer-two", "trainer-two")


@broken("tf-config-unusable", hosts="h0 h1 h2")
def endpoints_as_urls(bed: Bed) -> None:
    with_tf(bed, "http://h0:2222", "http://h1:2222", "http://h2:2222")


@broken("tf-config-unusable", hosts="h0 h1 h2")
def port_beyond_the_last(bed: Bed) -> None:
    with_tf(bed, "h0:92222", "h1:92222", "h2:92222")


@broken("tf-config-unusable", hosts="h0 h1 h2")
def single_quotes(bed: Bed) -> None:
    with_tf(bed, quoted=False)


@broken("tf-place-taken-twice", hosts="h0 h1 h2")
def everybody_is_worker_zero(bed: Bed) -> None:
    with_tf(bed, index="0")


@broken("tf-address-loopback", hosts="h0 h1 h2")
def workers_on_localhost(bed: Bed) -> None:
    with_tf(bed, "localhost:2222", "localhost:2223", "localhost:2224")


@broken("proxy-between-tasks", hosts="h1")
def grpc_proxy_on_one(bed: Bed) -> None:
    with_tf(bed)
    bed.set_variables({"grpc_proxy": "http://proxy.corp:3128"}, on=["h1"])


@broken("interface-loopback|no-outward-interface", hosts="h0 h1 h2")
def nccl_shuts_its_only_interface_out(bed: Bed) -> None:
    bed.set_variables({"NCCL_SOCKET_IFNAME": "^eth"})


@broken("interface-loopback|no-outward-interface", hosts="h0 h1 h2")
def nccl_excludes_docker_but_not_loopback(bed: Bed) -> None:
    bed.set_variables({"NCCL_SOCKET_IFNAME": "^docker0"})


@broken("interface-missing", hosts="h0 h1 h2")
def exact_name_of_a_prefix(bed: Bed) -> None:
    bed.set_variables({"NCCL_SOCKET_IFNAME": "=eth"})


@broken("interface-missing", hosts="h1")
def one_of_a_list_missing(bed: Bed) -> None:
    for name in ("h0", "h2"):
        bed[name].ip(
            "link add eth1 type bridge", f"addr add 10.88.0.{bed[name].number}/24 dev eth1", "link set eth1 up"
        )
    bed.set_variables({"GLOO_SOCKET_IFNAME": "eth0,eth1"})


@broken("interface-missing", hosts="h0 h1 h2")
def mpi_network_that_nobody_has(bed: Bed) -> None:
    bed.set_variables({"OMPI_MCA_btl_tcp_if_include": "10.99.0.0/16"})
    for host in bed:
        host.variables |= {"OMPI_COMM_WORLD_RANK": str(host.number), "OMPI_COMM_WORLD_SIZE": "3"}


@broken(
    "master-addr-loopback",
    hosts="h0 h1 h2",
    line="torchrun --nnodes 3 --rdzv-backend c10d --rdzv-endpoint localhost:29400 train.py",
)
def rendezvous_at_localhost(bed: Bed) -> None:
    without_torch(bed)


@broken(
    "master-port-invalid|rendezvous-endpoint-invalid",
    hosts="",
    line="torchrun --nnodes 3 --rdzv-backend c10d --rdzv-endpoint h0:29400/ train.py",
)
def endpoint_with_a_slash(bed: Bed) -> None:
    without_torch(bed)


@broken(
    "node-rank-duplicate|node-rank-unset",
    hosts="",
    line="torchrun --nnodes 3 --nproc-per-node 1 --master-addr h0 train.py",
)
def static_rendezvous_without_node_rank(bed: Bed) -> None:
    without_torch(bed)


@broken("master-addr-nobody|master-addr-loopback", hosts="h0 h1 h2")
def address_of_nothing(bed: Bed) -> None:
    bed.set_variables({"MASTER_ADDR": "0.0.0.0"})


@broken("master-addr-unresolvable|master-addr-malformed", hosts="h0 h1 h2")
def port_in_the_address(bed: Bed) -> None:
    bed.set_variables({"MASTER_ADDR": "10.77.0.10:29500"})


@broken("rank-out-of-range", hosts="h2")
def ranks_counted_from_one(bed: Bed) -> None:
    for host in bed:
        host.variables["RANK"] = str(host.number + 1)


@broken("rank-missing", hosts="")
def horovod_for_one_more(bed: Bed) -> None:
    without_torch(bed)
    for host in bed:
        host.variables |= {"HOROVOD_RANK": str(host.number), "HOROVOD_SIZE": "4", "HOROVOD_CONTROLLER": "gloo"}


@broken("master-addr-nobody|rendezvous-address-nobody", hosts="h0 h1 h2")
def horovod_rendezvous_at_nobody(bed: Bed) -> None:
    without_torch(bed)
    for host in bed:
        host.variables |= {
            "HOROVOD_RANK": str(host.number), "HOROVOD_SIZE": "3", "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.77.0.77", "HOROVOD_GLOO_RENDEZVOUS_PORT": "41000",
        }  # fmt: skip


@broken("master-port-in-use", hosts="h0")
def port_held_by_a_connection(bed: Bed) -> None:
    """Not by a listener: some process got it from the kernel as the near end of a connection."""
    bed.set_variables({"MASTER_PORT": "45111"})
    code = (
        "import socket,time;s=socket.create_server(('127.0.0.1',7001));c=socket.socket();c.bind(('',45111));"
        "c.connect(('127.0.0.1',7001));print('up',flush=True);time.sleep(600)"
    )
    keep(bed, [*bed["h0"].entry, "--", sys.executable, "-c", code], "holder")


@broken("slots-too-few", hosts="", line="mpirun -np 8 -H h0:2,h1:2,h2:2 python train.py")
def more_ranks_than_slots(bed: Bed) -> None:
    without_torch(bed)


@broken(
    "interface-missing",
    hosts="h0 h1 h2",
    line="mpirun -np 3 -H h0,h1,h2 --mca btl_tcp_if_include ib0 -x NCCL_DEBUG=INFO python train.py",
)
def interface_in_the_mpi_command(bed: Bed) -> None:
    without_torch(bed)


@broken(
    "variable-misspelt", hosts="h0 h1 h2", line="mpirun -np 3 -H h0,h1,h2 -x NCCL_SOCKET_IFNAM=eth0 python train.py"
)
def misspelt_in_the_mpi_command(bed: Bed) -> None:
    without_torch(bed)


@healthy(line="torchrun --nnodes 3 --node-rank 0 --nproc-per-node 1 --master-addr h0 train.py")
def line_of_the_first_node(bed: Bed) -> None:
    """The command as it is typed on node 0; the others get another --node-rank."""
    without_torch(bed)


@healthy(line="torchrun --nnodes 3 --rdzv-backend c10d --rdzv-endpoint [fd77::a]:29400 train.py")
def endpoint_of_ipv6(bed: Bed) -> None:
    without_torch(bed)


@healthy()
def variables_in_all_their_forms(bed: Bed) -> None:
    bed.set_variables(
        {
            "NCCL_SOCKET_IFNAME": "^docker,lo,virbr",
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMPI_MCA_btl_tcp_if_include": "10.77.0.0/24",
            "NCCL_IB_DISABLE": "1",
            "NCCL_DEBUG": "INFO",
            "UCX_TLS": "tcp,self",
            "http_proxy": "http://proxy.corp:3128",
            "OMP_NUM_THREADS": "4,2",
        }
    )


@healthy(options=CheckOptions(libraries=frozenset(["tensorflow"])))
def tasks_of_tensorflow(bed: Bed) -> None:
    with_tf(bed, "h0:2222", "h1:2222", "h2:2222")
    bed.set_variables({"https_proxy": "http://proxy.corp:3128", "no_proxy": "h0,h1,h2,localhost"})
