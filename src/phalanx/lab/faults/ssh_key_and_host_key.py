"""One host refuses the SSH key, another shows a host key that is not the one known."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.ssh import make_key, start_ssh

EXPECTED = Expected(
    cause="ssh-key-refused", only_outside=True, hosts=("h1", "h2"), at_least=3, also=("ssh-host-key-changed",)
)


def apply(bed: Bed) -> None:
    """Both were installed anew, each in another way."""
    start_ssh(bed)
    shared = bed.folder / "ssh"
    (shared / "h1" / "authorized_keys").write_text("", encoding="utf-8")
    make_key(shared / "other")
    other = (shared / "other.pub").read_text(encoding="utf-8").strip()
    known = (shared / "known_hosts").read_text(encoding="utf-8").splitlines()
    lines = [f"h2,{bed['h2'].address} {other}" if line.startswith("h2,") else line for line in known]
    (shared / "known_hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
