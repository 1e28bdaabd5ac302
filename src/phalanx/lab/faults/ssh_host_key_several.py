"""All hosts but the first show another SSH host key than is known."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.ssh import start_ssh

EXPECTED = Expected(cause="ssh-host-key-changed", only_outside=True, hosts=("h1", "h2"), at_least=3)


def apply(bed: Bed) -> None:
    """They were installed anew."""
    start_ssh(bed)
    known = bed.folder / "ssh" / "known_hosts"
    lines = known.read_text(encoding="utf-8").splitlines()
    first = lines[0].split(" ", 1)[1]
    kept = [line if line.startswith("h0,") else f"{line.split(' ', 1)[0]} {first}" for line in lines]
    known.write_text("\n".join(kept) + "\n", encoding="utf-8")
