"""What faults are made of: foreign listeners, changed names, plain frames, a slow path, a router that translates addresses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from phalanx.lab.bed import Bed
from phalanx.lab.errors import LabError
from phalanx.lab.host import Host
from phalanx.lab.host import load as load_rules

_PYTHON = [sys.executable, "-I", "-S"]
_RELAY = Path(__file__).with_name("relay.py")
# Greets with the banner, if there is one, and then keeps silent whatever comes.
_SERVICE = """
import socket, sys, threading, time
server = socket.create_server(("", int(sys.argv[1])), family=socket.AF_INET)
banner = sys.argv[2].encode().decode("unicode_escape").encode()
print("up", flush=True)
kept = []
while True:
    peer, _ = server.accept()
    if banner:
        peer.send(banner)
    kept = [*kept[-50:], peer]
"""
# Segments and checksums made by the kernel, not left to a card that is not there: a frame is then what goes over a real wire.
_PLAIN = """
import array, fcntl, socket, struct, sys
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for command in (0x1F, 0x24, 0x2C, 0x17):
    value = array.array("B", struct.pack("II", command, 0))
    request = struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0])
    fcntl.ioctl(asker, 0x8946, request)
"""


def listen(bed: Bed, host: str, port: int, banner: str) -> None:
    """A service of somebody else on a port."""
    keep(bed, [*bed[host].entry, "--", *_PYTHON, "-c", _SERVICE, str(port), banner], f"{host}: port {port}")


def keep(bed: Bed, command: list[str], what: str) -> subprocess.Popen[str]:
    """Start something that lives with the bed, and wait until it says that it is up."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it may outlive the caller, whose pipes it must not hold open
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() != "up\n":
        process.wait(10)
        raise LabError(f"{what}: did not come up (status {process.returncode})")
    bed.services.append(process)
    return process


def change_name(host: Host, line: str, name: str | None = None) -> None:
    """Replace what this host knows of a name, its own if none is given; an empty line takes the name away."""
    name = name or host.name
    path = host.folder / "hosts"
    kept = [one for one in path.read_text(encoding="utf-8").splitlines() if name not in one.split()[1:]]
    host.names("\n".join([*kept, line]) + "\n")


def use_ipv6_only(bed: Bed) -> None:
    """Take the IPv4 addresses away; names lead to the others, and MASTER_ADDR is a name."""
    names = "127.0.0.1 localhost\n::1 localhost\n" + "".join(f"{host.address6} {host.name}\n" for host in bed)
    for host in bed:
        host.ip(f"addr del {host.address}/24 dev eth0")
        host.names(names)
    bed.set_variables({"MASTER_ADDR": "h0"})


def load(bed: Bed) -> None:
    """Twice as many loops as cores; they end with the bed."""
    loop = [*bed.hosts[0].entry, "--", sys.executable, "-c", "print('up', flush=True)\nwhile True: pass"]
    for _ in range(2 * (os.cpu_count() or 1)):
        keep(bed, loop, "load")


def plain_frames(host: Host, interface: str = "eth0") -> None:
    """No segments larger than a frame leave this host."""
    host.run([*_PYTHON, "-c", _PLAIN, interface])


def delay(bed: Bed, host: str, milliseconds: float) -> None:
    """A relay between the host's cable and the switch, which keeps every frame for a while."""
    here = bed[host]
    plain_frames(here)
    for other in bed:
        if other is not here:
            plain_frames(other)
    near, far = f"r{here.number}", f"q{here.number}"
    bed.switch_ip(
        f"link set {here.port} nomaster",
        f"link set {here.port} promisc on",
        f"link add {near} type veth peer name {far}",
        f"link set {far} master sw0 up",
        f"link set {near} promisc on up",
    )
    keep(bed, [*bed.switch_inside, *_PYTHON, str(_RELAY), here.port, near, str(milliseconds)], "relay")


def put_behind_nat(bed: Bed, host: str) -> None:
    """The switch becomes a router for this host: it goes out under the router's address, and nobody comes in."""
    here = bed[host]
    inner = f"192.168.77.{10 + here.number}"
    bed.switch_ip(
        f"link set {here.port} nomaster",
        f"addr add 192.168.77.1/24 dev {here.port}",
        "addr add 10.77.0.1/24 dev sw0",
    )
    load_rules([*bed.switch_entry, "sh", "-c", "cat > /proc/sys/net/ipv4/ip_forward"], "1\n", "switch")
    rules = f"""table ip nat {{
 chain postrouting {{
  type nat hook postrouting priority 100;
  ip saddr 192.168.77.0/24 oifname "sw0" masquerade
 }}
 chain forward {{
  type filter hook forward priority 0;
  iifname "sw0" oifname "{here.port}" ct state new drop
 }}
}}
"""
    load_rules([*bed.switch_entry, "nft", "-f", "-"], rules, "switch")
    here.ip(
        f"addr del {here.address}/24 dev eth0",
        f"addr add {inner}/24 dev eth0",
        "route add default via 192.168.77.1",
    )
    for other in bed:
        change_name(other, f"{inner} {host}", host)
        if other is not here:
            other.ip("route add default via 10.77.0.1")
    here.address = inner
