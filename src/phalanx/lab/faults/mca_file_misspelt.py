"""A parameter in the user's file of MCA parameters is misspelt."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="variable-misspelt", symptom="comm.unexpected-protocol", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """Open MPI reads the file and ignores the line."""
    folder = bed.folder / "home" / ".openmpi"
    folder.mkdir(parents=True)
    (folder / "mca-params.conf").write_text("# of this cluster\nbtl_tcp_if_inclde = eth0\n", encoding="utf-8")
    for host in bed:
        host.variables |= {"OMPI_COMM_WORLD_RANK": str(host.number), "OMPI_COMM_WORLD_SIZE": str(len(bed.hosts))}
        host.variables["HOME"] = str(folder.parent)
