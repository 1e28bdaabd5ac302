"""One host's key is another than the one that is remembered."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.ssh import start_ssh

EXPECTED = Expected(cause="ssh-host-key-changed", only_outside=True, hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """It was installed anew."""
    start_ssh(bed)
    known = bed.folder / "ssh" / "known_hosts"
    lines = known.read_text(encoding="utf-8").splitlines()
    other = next(line.split(" ", 1)[1] for line in lines if not line.startswith(f"{host},"))
    changed = [f"{line.split(' ', 1)[0]} {other}" if line.startswith(f"{host},") else line for line in lines]
    known.write_text("\n".join(changed) + "\n", encoding="utf-8")
