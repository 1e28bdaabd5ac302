"""Several hosts do not know the key with which the first logs in."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.ssh import start_ssh

EXPECTED = Expected(cause="ssh-key-refused", only_outside=True, hosts=("h1", "h2"), at_least=3, held_back=True)


def apply(bed: Bed) -> None:
    """It was copied to the first host only."""
    start_ssh(bed)
    for host in list(bed)[1:]:
        (bed.folder / "ssh" / host.name / "authorized_keys").write_text("", encoding="utf-8")
