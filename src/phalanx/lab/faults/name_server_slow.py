"""The first name server of one host does not answer."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="name-server-slow", hosts=("h1",), also=("own-name-missing",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Each look-up waits for it."""
    folder = bed[host].folder
    (folder / "nsswitch.conf").write_text("passwd: files\nhosts: dns files\n", encoding="utf-8")
    (folder / "resolv.conf").write_text("nameserver 10.77.0.222\noptions timeout:3 attempts:1\n", encoding="utf-8")
    bed.set_variables({"MASTER_ADDR": "h0"})
