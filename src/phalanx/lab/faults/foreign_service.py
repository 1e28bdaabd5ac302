"""Another service answers on MASTER_PORT: an SSH server there."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import listen

EXPECTED = Expected(cause="foreign-service-on-port", hosts=("h0",), also=("master-port-in-use",))


def apply(bed: Bed, host: str = "h0", port: int = 29500) -> None:
    """Something that greets."""
    listen(bed, host, port, "SSH-2.0-OpenSSH_9.2\\r\\n")
