"""Unseen beds, first part: what stands between the hosts."""

from __future__ import annotations

from phalanx.lab import Bed
from phalanx.lab.host import load
from phalanx.lab.services import change_name, keep, plain_frames
from tests.preflight.unseen import broken, healthy

# Takes every connection to one port and resets it, at once or after so many bytes.
_RESETTER = """
import socket, struct, sys
server = socket.create_server(("", int(sys.argv[1])))
print("up", flush=True)
while True:
    peer, _ = server.accept()
    got = 0
    while got < int(sys.argv[2]):
        got += len(peer.recv(65536)) or 1 << 30
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
"""


def only_ipv6(bed: Bed) -> None:
    """No IPv4 anywhere."""
    for host in bed:
        host.ip(f"addr del {host.address}/24 dev eth0")
        host.names(
            "127.0.0.1 localhost\n::1 localhost\n" + "".join(f"{one.address6} {one.name}\n" for one in bed.hosts)
        )
    bed.set_variables({"MASTER_ADDR": bed.hosts[0].address6})


@broken("firewall-store-port|firewall-rule-on-store-port", hosts="h0")
def another_port_of_the_store_dropped(bed: Bed) -> None:
    bed.set_variables({"MASTER_PORT": "30123"})
    bed["h0"].filter("tcp dport 30123 drop")


@broken("firewall-ephemeral-ports", hosts="h2")
def ipv6_high_ports_dropped(bed: Bed) -> None:
    only_ipv6(bed)
    bed["h2"].filter("tcp dport 29500 accept", "ct state established accept", "meta l4proto tcp drop")


@broken("firewall-rejects", hosts="h1")
def ipv6_prohibited(bed: Bed) -> None:
    only_ipv6(bed)
    bed["h1"].filter("ct state established accept", "tcp flags syn reject with icmpv6 type admin-prohibited")


@broken("firewall-rejects", hosts="h3", count=4)
def last_host_says_host_unreachable(bed: Bed) -> None:
    bed["h3"].filter("ct state established accept", "tcp flags syn reject with icmp type host-unreachable")


@broken("firewall-rejects", hosts="h1")
def says_network_unreachable(bed: Bed) -> None:
    bed["h1"].filter("ct state established accept", "tcp flags syn reject with icmp type net-unreachable")


@broken("one-way-block", hosts="h1")
def own_output_prohibited(bed: Bed) -> None:
    bed["h1"].filter(
        "ct state established accept", "tcp flags syn reject with icmp type admin-prohibited", hook="output"
    )


@broken("firewall-store-port|one-way-block", hosts="h0 h2")
def store_port_shut_for_one(bed: Bed) -> None:
    bed.switch_filter('iifname "p2" tcp dport 29500 drop')


@broken("firewall-ephemeral-ports", "world-size-differs", hosts="h1 h2")
def firewall_and_world_size(bed: Bed) -> None:
    bed["h1"].filter("tcp dport 29500 accept", "ct state established accept", "meta l4proto tcp drop")
    bed.set_variables({"WORLD_SIZE": "4"}, on=["h2"])


@broken("some-connections-vanish", hosts="h1")
def one_of_two_paths_dead(bed: Bed) -> None:
    """Flows are spread over two paths by their ports, and one path is dead, both ways."""
    first = "tcp flags & (syn | ack) == syn tcp sport & 2 == 2"
    bed.switch_filter(f'iifname "p1" {first} drop', f'oifname "p1" {first} drop')


@broken("some-connections-vanish", hosts="h2", count=4)
def one_of_four_paths_dead(bed: Bed) -> None:
    bed.switch_filter('oifname "p2" tcp flags & (syn | ack) == syn tcp sport & 6 == 2 drop')


@broken("firewall-resets|middlebox-answers", hosts="h1")
def proxy_resets(bed: Bed) -> None:
    keep(bed, [*bed["h1"].entry, "--", "python3", "-c", _RESETTER, "7", "0"], "resetter")
    rules = "table ip redir {\n chain pre {\n  type nat hook prerouting priority -100;\n  meta l4proto tcp redirect to :7\n }\n}\n"
    bed["h1"].nft(rules)


@broken("firewall-resets|middlebox-answers|connection-cut-in-use", hosts="h1")
def cut_after_ten_thousand_bytes(bed: Bed) -> None:
    """A box that inspects what passes and cuts what it does not know."""
    bed["h1"].filter("ct original bytes > 10000 reject with tcp reset")


@broken("no-route", hosts="h1")
def netmask_too_small(bed: Bed) -> None:
    bed["h1"].ip("addr flush dev eth0", "addr add 10.77.0.11/32 dev eth0")


@broken("no-route|pair-blocked", hosts="h1")
def netmask_leaves_one_out(bed: Bed) -> None:
    bed["h1"].ip("addr flush dev eth0", "addr add 10.77.0.11/31 dev eth0")


@broken("interface-unreachable|own-name-stale", hosts="h1")
def own_name_is_of_the_vpn(bed: Bed) -> None:
    bed["h1"].ip(
        "link add tun0 type bridge", "addr add 10.8.0.6/24 dev tun0", "link set tun0 up", "route add default dev tun0"
    )
    change_name(bed["h1"], "10.8.0.6 h1")


@broken("host-unreachable|no-route|interface-unreachable|second-interface-shadows", hosts="h1")
def second_interface_of_the_network_is_unplugged(bed: Bed) -> None:
    """Two interfaces in one network: the kernel takes the newer route, and its cable leads nowhere."""
    bed["h1"].ip(
        "link add eth1 type bridge",
        "link set eth1 up",
        "addr add 10.77.0.111/24 dev eth1",
        "route del 10.77.0.0/24 dev eth0",
    )


@broken("mtu-black-hole", hosts="h2")
def jumbo_on_the_last_host(bed: Bed) -> None:
    for host in bed:
        plain_frames(host)
    bed.switch_ip("link set p2 mtu 9000", "link set p0 mtu 9000", "link set p1 mtu 9000")
    for host in bed:
        host.ip("link set eth0 mtu 9000")
    bed.switch_filter('iifname "p2" meta length > 1500 drop', 'oifname "p2" meta length > 1500 drop')


@broken("duplicate-hardware-address", hosts="h0 h2")
def cloned_machine(bed: Bed) -> None:
    for name in ("h0", "h2"):
        bed[name].ip("link set eth0 down", "link set eth0 address 02:00:00:00:77:01", "link set eth0 up")
    for name in ("h0", "h2"):
        bed[name].ip(f"addr replace {bed[name].address6}/64 dev eth0 nodad")


@broken("master-addr-wrong-host|name-of-peer-stale|master-addr-stale", hosts="h2")
def alias_of_the_master_differs(bed: Bed) -> None:
    for host in bed:
        address = bed["h1"].address if host.name == "h2" else bed["h0"].address
        change_name(host, f"{address} master", "master")
    bed.set_variables({"MASTER_ADDR": "master"})


@broken("firewall-limits-connections|firewall-drops|some-connections-vanish", hosts="h1")
def one_new_connection_a_second(bed: Bed) -> None:
    bed["h1"].filter(
        "ct state established accept", "tcp flags syn limit rate 1/second burst 1 packets accept", "tcp flags syn drop"
    )


@broken("ephemeral-ports-few", hosts="h1")
def ten_ephemeral_ports(bed: Bed) -> None:
    bed["h1"].write("/proc/sys/net/ipv4/ip_local_port_range", "60990 60999\n")


@broken("listen-queue-short", hosts="h0")
def queue_of_one(bed: Bed) -> None:
    bed["h0"].write("/proc/sys/net/core/somaxconn", "1\n")


@healthy()
def everything_over_ipv6(bed: Bed) -> None:
    only_ipv6(bed)


@healthy()
def names_have_ipv6_first(bed: Bed) -> None:
    for host in bed:
        lines = [f"{one.address6} {one.name}\n{one.address} {one.name}\n" for one in bed.hosts]
        host.names("127.0.0.1 localhost\n::1 localhost\n" + "".join(lines))
    bed.set_variables({"MASTER_ADDR": "h0"})


@healthy()
def load_balancer_before_the_master(bed: Bed) -> None:
    """A virtual address that the router sends on to rank 0, as a service of Kubernetes does."""
    bed.switch_ip("addr add 10.77.0.1/24 dev sw0")
    load([*bed.switch_entry, "sh", "-c", "cat > /proc/sys/net/ipv4/ip_forward"], "1\n", "switch")
    rules = """table ip nat {
 chain pre {
  type nat hook prerouting priority -100;
  ip daddr 10.99.0.1 tcp dport 29500 dnat to 10.77.0.10
 }
 chain post {
  type nat hook postrouting priority 100;
  ip daddr 10.77.0.10 masquerade
 }
}
"""
    load([*bed.switch_entry, "nft", "-f", "-"], rules, "switch")
    # Rank 0 calls its own store by that address too; its way is turned round on the host itself, as kube-proxy does it.
    own = "type nat hook output priority -100; ip daddr 10.99.0.1 tcp dport 29500 dnat to 10.77.0.10"
    bed["h0"].nft(f"table ip nat {{\n chain out {{\n {own}\n }}\n}}\n")
    for host in bed:
        host.ip("route add 10.99.0.0/24 via 10.77.0.1")
    bed.set_variables({"MASTER_ADDR": "10.99.0.1"})


@healthy()
def bonds_and_containers(bed: Bed) -> None:
    for host in bed:
        host.ip(
            "link set eth0 down", "link set eth0 name bond0", "link set bond0 up", f"addr replace {host.address6}/64 dev bond0 nodad",
            "link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up",
            "link add veth1a2b type bridge", "link set veth1a2b up", "link add br-77 type bridge", "addr add 172.18.0.1/16 dev br-77", "link set br-77 up",
        )  # fmt: skip
    bed.set_variables({"NCCL_SOCKET_IFNAME": "bond", "GLOO_SOCKET_IFNAME": "bond0"})


@healthy()
def second_network_and_vpn(bed: Bed) -> None:
    for host in bed:
        bed.switch_ip(
            f"link add s{host.number} type veth peer name eth1 netns {host.pid}",
            f"link set s{host.number} master sw0 up",
        )
        host.ip(
            f"addr add 10.88.0.{10 + host.number}/24 dev eth1", "link set eth1 up", "link add tun0 type bridge",
            f"addr add 10.8.0.{6 + 4 * host.number}/30 dev tun0", "link set tun0 up", "route add default dev tun0",
        )  # fmt: skip


@healthy()
def closed_but_for_the_job(bed: Bed) -> None:
    for host in bed:
        host.filter("ct state established,related accept", 'iifname "lo" accept', "ip saddr 10.77.0.0/24 accept",
                    "meta l4proto ipv6-icmp accept", "ip6 saddr fd77::/64 accept", "drop")  # fmt: skip


@healthy()
def two_interfaces_in_one_network(bed: Bed) -> None:
    for host in bed:
        bed.switch_ip(
            f"link add s{host.number} type veth peer name eth1 netns {host.pid}",
            f"link set s{host.number} master sw0 up",
        )
        host.ip(f"addr add 10.77.0.{110 + host.number}/24 dev eth1", "link set eth1 up")


@healthy()
def names_in_capitals(bed: Bed) -> None:
    for host in bed:
        host.write("/proc/sys/kernel/hostname", f"Node_{host.number}.Cluster\n")
        host.names("127.0.0.1 localhost\n" + "".join(f"{one.address} Node_{one.number}.Cluster\n" for one in bed.hosts))
    bed.set_variables({"MASTER_ADDR": "node_0.cluster"})


@healthy()
def busy_with_many_connections(bed: Bed) -> None:
    """Listeners on many ports, and a disk's worth of connections that wait for their end."""
    code = (
        "import socket,time;s=[socket.create_server(('',20000+n)) for n in range(200)];"
        "c=[socket.create_connection(('127.0.0.1',20000+n)) for n in range(200)];print('up',flush=True);time.sleep(600)"
    )
    for host in bed:
        keep(bed, [*host.entry, "--", "python3", "-c", code], "listeners")


@healthy(count=2)
def store_port_among_the_ephemeral(bed: Bed) -> None:
    bed.set_variables({"MASTER_PORT": "45123"})
