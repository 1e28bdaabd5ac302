"""mpirun is told a --prefix that one host does not have."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="mpi-daemon-missing",
    symptom="comm.setup-failure",
    only_outside=True,
    hosts=("h2",),
    at_least=3,
    held_back=True,
)


def apply(bed: Bed) -> None:
    """Open MPI was installed elsewhere there."""
    place = "/run/openmpi"  # a folder of each host's own
    for host in bed:
        if host.number != 2:
            host.run(["mkdir", "-p", f"{place}/bin"])
            for name in ("mpirun", "orted", "prted"):
                host.write(f"{place}/bin/{name}", "#!/bin/sh\n")
                host.run(["chmod", "755", f"{place}/bin/{name}"])
    bed.command = f"mpirun --prefix {place} -np 3 -H h0,h1,h2 python -m train"
