"""A variable names an interface that exists everywhere, but does not connect the hosts."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="interface-unreachable", hosts=("h0", "h1", "h2"), also=("no-neighbour", "host-unreachable"))


def apply(bed: Bed, name: str = "eth1") -> None:
    """A second network whose cables lead nowhere."""
    for host in bed:
        host.ip(
            f"link add {name} type bridge",
            f"addr add 10.88.0.{10 + host.number}/24 dev {name}",
            f"link set {name} up",
        )
    bed.set_variables({"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name})
