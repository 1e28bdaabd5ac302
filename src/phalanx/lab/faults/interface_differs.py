"""One host's interface has another name than the variable says."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="interface-missing", hosts=("h1",), also=("interface-differs",))


def apply(bed: Bed, host: str = "h1", name: str = "ens3") -> None:
    """The same value everywhere, where hosts differ."""
    bed.set_variables({"GLOO_SOCKET_IFNAME": "eth0"})
    here = bed[host]
    here.ip("link set eth0 down", f"link set eth0 name {name}", f"link set {name} up")
    here.ip(f"addr replace {here.address6}/64 dev {name} nodad")
