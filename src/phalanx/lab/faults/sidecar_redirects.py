"""A sidecar on one host takes all connections that leave it."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import listen

EXPECTED = Expected(cause="sidecar-redirects", hosts=("h1",), at_least=3, also=("middlebox-answers",))


def apply(bed: Bed, host: str = "h1") -> None:
    """A service mesh was injected into the pod."""
    listen(bed, host, 15001, "")
    rules = """table ip sidecar {
 chain output {
  type nat hook output priority -100;
  oifname != "lo" meta l4proto tcp redirect to :15001
 }
}
"""
    bed[host].nft(rules)
