"""MASTER_ADDR leads to a machine outside the job, on which another service answers."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import listen

EXPECTED = Expected(
    cause="foreign-service-on-port",
    hosts=("h0", "h1"),
    also=("master-addr-nobody",),
    at_least=3,
)


def apply(bed: Bed, owner: str = "") -> None:
    """The last host of the bed is not of the job, but has the address; what is left of the job has one rank less."""
    stranger = bed[owner] if owner else bed.hosts[-1]
    listen(bed, stranger.name, 29500, "HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
    bed.hosts.remove(stranger)
    bed.strangers.append(stranger)
    bed.set_variables({"MASTER_ADDR": stranger.address, "WORLD_SIZE": str(len(bed.hosts))})
