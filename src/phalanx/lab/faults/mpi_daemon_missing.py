"""The shell of one host does not find Open MPI's daemon."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="mpi-daemon-missing", symptom="comm.setup-failure", only_outside=True, hosts=("h1",), at_least=3
)


def apply(bed: Bed, host: str = "h1") -> None:
    """Its PATH is set in a file that only login shells read."""
    for other in bed:
        folder = other.folder / "openmpi"
        folder.mkdir()
        if other.name != host:
            for name in ("mpirun", "orted", "prted"):
                (folder / name).write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.6'\n", encoding="utf-8")
                (folder / name).chmod(0o755)
        other.variables["PATH"] = f"{folder}:/usr/local/bin:/bin" if other.name != host else "/usr/local/bin"
    bed.command = "mpirun -np 3 -H h0,h1,h2 python -m train"
