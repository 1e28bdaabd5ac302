"""One of two ranks on a host has another protocol of NCCL."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="setting-differs-hang", symptom="comm.hang-timeout", hosts=("h1",), only_inside=True)


def apply(bed: Bed) -> None:
    """Exported in the shell that started this one."""
    bed.put_ranks(2)
    bed["h1"].ranks[1]["NCCL_PROTO"] = "LL"
