"""One host does not know the key with which the others log in."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.ssh import start_ssh

EXPECTED = Expected(cause="ssh-key-refused", only_outside=True, hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """It was not copied there."""
    start_ssh(bed)
    (bed.folder / "ssh" / host / "authorized_keys").write_text("", encoding="utf-8")
