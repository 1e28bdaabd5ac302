"""A file of NCCL on one host sets the protocol."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="setting-differs-hang", symptom="comm.hang-timeout", hosts=("h1",), at_least=3, held_back=True
)


def apply(bed: Bed, host: str = "h1") -> None:
    """No variable shows it."""
    path = bed[host].folder / "nccl.conf"
    path.write_text("NCCL_PROTO=Simple\n", encoding="utf-8")
    bed[host].variables["NCCL_CONF_FILE"] = str(path)
