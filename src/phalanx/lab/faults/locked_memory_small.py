"""One host has InfiniBand, and lets the job's user lock little memory."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="locked-memory-small", hosts=("h1",))
_CARD = """
mkdir -p /run/class/net /run/class/infiniband/mlx5_0
mount --rbind /sys/class/net /run/class/net
mount --rbind /run/class /sys/class
"""


def apply(bed: Bed, host: str = "h1", kilobytes: int = 64, user: int = 65534) -> None:
    """The limit of a service manager that was not raised; root is not bound by it."""
    bed[host].run(["sh", "-ec", _CARD])  # as root
    for one in bed:
        one.user = user
    bed[host].limits.append(f"--memlock={kilobytes * 1024}:{kilobytes * 1024}")
