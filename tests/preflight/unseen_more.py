"""Unseen beds, third part: a second round, written after the first had been mended, and scored once before anything was changed for it."""

from __future__ import annotations

import json
import sys

from phalanx.lab import Bed
from phalanx.lab.host import UNSET, load
from phalanx.lab.services import change_name, delay, keep, plain_frames, put_behind_nat
from tests.preflight.unseen import broken, healthy
from tests.preflight.unseen_networks import only_ipv6
from tests.preflight.unseen_settings import with_tf, without_torch

_HIGH = ("tcp dport 29500 accept", "ct state established accept", "meta l4proto tcp drop")


@broken("firewall-store-port", hosts="h0")
def ipv6_store_port_dropped(bed: Bed) -> None:
    only_ipv6(bed)
    bed["h0"].filter("tcp dport 29500 drop")


@broken("firewall-drops", hosts="h0")
def rank_zero_lets_only_ssh_in(bed: Bed) -> None:
    bed["h0"].filter(
        "ct state established,related accept", 'iifname "lo" accept', "tcp dport 22 accept", "meta l4proto tcp drop"
    )


@broken("network-partitioned", hosts="", count=4)
def two_racks_apart(bed: Bed) -> None:
    for one in ("p0", "p1"):
        for other in ("p2", "p3"):
            bed.switch_filter(f'iifname "{one}" oifname "{other}" drop', f'iifname "{other}" oifname "{one}" drop')


@broken("pair-blocked|one-way-block", hosts="h2 h3", count=4)
def last_two_reject_each_other(bed: Bed) -> None:
    bed["h2"].filter("ip saddr 10.77.0.13 tcp flags & (syn | ack) == syn reject with icmp type admin-prohibited")
    bed["h3"].filter("ip saddr 10.77.0.12 tcp flags & (syn | ack) == syn reject with icmp type admin-prohibited")


@broken("mtu-black-hole", hosts="h1")
def large_frames_lost_one_way(bed: Bed) -> None:
    for host in bed:
        plain_frames(host)
    bed.switch_filter('iifname "p1" meta length > 1400 drop')


@broken("packet-loss", hosts="h0")
def rank_zero_loses_much(bed: Bed) -> None:
    for host in bed:
        plain_frames(host)
    bed.switch_filter('oifname "p0" numgen random mod 100 < 12 drop')


@broken("slow-latency", hosts="h3", count=4)
def last_host_is_far(bed: Bed) -> None:
    delay(bed, "h3", 15)


@broken("behind-nat", hosts="h3", count=4)
def last_host_behind_a_router(bed: Bed) -> None:
    put_behind_nat(bed, "h3")


@broken("interface-missing", hosts="h0 h1 h2")
def alias_for_an_interface(bed: Bed) -> None:
    bed.set_variables({"GLOO_SOCKET_IFNAME": "eth0:0"})


@broken("master-addr-differs", hosts="")
def everybody_is_the_master(bed: Bed) -> None:
    for host in bed:
        host.variables["MASTER_ADDR"] = host.name


@broken("own-name-stale|name-of-peer-stale", hosts="h2")
def own_name_is_of_another_host(bed: Bed) -> None:
    change_name(bed["h2"], f"{bed['h0'].address} h2")


@broken("master-port-invalid", hosts="h0 h1 h2")
def port_zero(bed: Bed) -> None:
    bed.set_variables({"MASTER_PORT": "0"})


@broken("master-port-in-use", hosts="h0")
def port_taken_over_ipv6(bed: Bed) -> None:
    code = (
        "import socket,time;s=socket.socket(socket.AF_INET6);s.setsockopt(41,26,1);s.bind(('::',29500));s.listen();"
        "print('up',flush=True);time.sleep(600)"
    )
    keep(bed, [*bed["h0"].entry, "--", sys.executable, "-c", code], "listener")


@broken(
    "nnodes-not-the-hosts", hosts="", line="torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint h0:29400 train.py"
)
def one_host_too_many(bed: Bed) -> None:
    without_torch(bed)


@broken("launch-command-wrong", hosts="", line="torchrun --standalone --nnodes 3 --nproc-per-node 1 train.py")
def standalone_on_three(bed: Bed) -> None:
    without_torch(bed)


@broken("slots-too-few", hosts="", line="horovodrun -np 6 -H h0:1,h1:1,h2:1 python train.py")
def horovod_without_slots(bed: Bed) -> None:
    without_torch(bed)


@broken("firewall-task-port", hosts="h2")
def parameter_server_rejects(bed: Bed) -> None:
    without_torch(bed)
    cluster = {"chief": ["h0:2220"], "worker": ["h1:2221"], "ps": ["h2:2223"]}
    for host, kind in zip(bed, cluster, strict=True):
        host.variables["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})
    bed["h2"].filter("tcp dport 2223 reject with tcp reset")


@broken("tf-clusters-differ", hosts="h1")
def one_cluster_is_old(bed: Bed) -> None:
    with_tf(bed)
    bed["h1"].variables["TF_CONFIG"] = bed["h1"].variables["TF_CONFIG"].replace("h2:2222", "h2:3333")


@broken("variables-contradict", hosts="h0 h1 h2")
def infiniband_that_is_not_there(bed: Bed) -> None:
    bed.set_variables({"NCCL_IB_HCA": "mlx5_0"})


@broken("mtu-black-hole", "value-misparsed", hosts="h0 h1 h2")
def tunnel_and_a_word_for_a_number(bed: Bed) -> None:
    for host in bed:
        plain_frames(host)
    bed.switch_filter('iifname "p1" meta length > 1400 drop', 'oifname "p1" meta length > 1400 drop')
    bed.set_variables({"NCCL_IB_DISABLE": "yes"})


@broken("no-route", hosts="h1")
def black_hole_route(bed: Bed) -> None:
    bed["h1"].ip("route add blackhole 10.77.0.12/32")


@broken("one-way-block|pair-blocked", hosts="h1 h2")
def wrong_neighbour_entry(bed: Bed) -> None:
    bed["h1"].ip("neigh replace 10.77.0.12 lladdr 02:00:00:00:00:99 dev eth0 nud permanent")


@broken("open-files-limit", hosts="h3", count=4)
def few_files_on_the_last(bed: Bed) -> None:
    bed["h3"].limits.append("--nofile=200")


@broken("shared-memory-small", hosts="h2")
def shared_memory_read_only(bed: Bed) -> None:
    bed["h2"].run(["mount", "-o", "remount,ro", "/dev/shm"])


@broken("variables-contradict", hosts="h0 h1 h2")
def ucx_stays_inside(bed: Bed) -> None:
    bed.set_variables({"UCX_TLS": "sm,self"})


@broken("firewall-ephemeral-ports", "firewall-ephemeral-ports", hosts="h1 h3", count=4)
def two_hosts_closed(bed: Bed) -> None:
    for name in ("h1", "h3"):
        bed[name].filter(*_HIGH)


@healthy(count=4)
def two_networks_and_a_router(bed: Bed) -> None:
    load([*bed.switch_entry, "sh", "-c", "cat > /proc/sys/net/ipv4/ip_forward"], "1\n", "switch")
    bed.switch_ip("addr add 10.77.0.1/24 dev sw0", "addr add 10.78.0.1/24 dev sw0")
    moved = {"h2": "10.78.0.12", "h3": "10.78.0.13"}
    for host in bed:
        if host.name in moved:
            host.ip(
                f"addr del {host.address}/24 dev eth0",
                f"addr add {moved[host.name]}/24 dev eth0",
                "route add default via 10.78.0.1",
            )
        else:
            host.ip("route add default via 10.77.0.1")
        for name, address in moved.items():
            change_name(host, f"{address} {name}", name)


@healthy()
def jumbo_frames_everywhere(bed: Bed) -> None:
    for host in bed:
        bed.switch_ip(f"link set {host.port} mtu 9000")
        host.ip("link set eth0 mtu 9000")


@healthy()
def two_addresses_each(bed: Bed) -> None:
    for host in bed:
        host.ip(f"addr add 10.99.1.{10 + host.number}/24 dev eth0")
    bed.set_variables({"MASTER_ADDR": "10.99.1.10"})


@healthy()
def addresses_on_loopback(bed: Bed) -> None:
    """As where every host tells its own route: the address that counts is on lo."""
    for host in bed:
        host.ip(f"addr add 10.66.0.{10 + host.number}/32 dev lo")
        host.names("127.0.0.1 localhost\n" + "".join(f"10.66.0.{10 + one.number} {one.name}\n" for one in bed.hosts))
        for other in bed:
            if other is not host:
                host.ip(f"route add 10.66.0.{10 + other.number}/32 via {other.address}")
    bed.set_variables({"MASTER_ADDR": "h0"})


@healthy(
    line="torchrun --nnodes 2:4 --max-restarts 3 --rdzv-backend c10d --rdzv-id 7 --rdzv-endpoint h0:29400 train.py"
)
def elastic_job(bed: Bed) -> None:
    bed.set_variables(
        {"RANK": UNSET, "WORLD_SIZE": UNSET, "MASTER_ADDR": UNSET, "LOCAL_RANK": UNSET, "LOCAL_WORLD_SIZE": UNSET}
    )


@healthy()
def closed_both_ways_but_for_the_job(bed: Bed) -> None:
    for host in bed:
        for hook, end in (("input", "saddr"), ("output", "daddr")):
            host.filter("ct state established,related accept", f"ip {end} {{ 10.77.0.0/24, 127.0.0.0/8 }} accept",
                        "meta l4proto ipv6-icmp accept", f"ip6 {end} {{ fd77::/64, ::1 }} accept", "drop", hook=hook)  # fmt: skip


@healthy(line="mpirun -np 6 -H h0:2,h1:2,h2:2 --mca btl_tcp_if_exclude lo,docker0 -x NCCL_DEBUG=INFO python train.py")
def mpi_beside_docker(bed: Bed) -> None:
    without_torch(bed)
    for host in bed:
        host.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up")
