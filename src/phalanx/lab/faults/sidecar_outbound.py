"""A proxy beside one host takes all that it opens to high ports; the port of the store is left out."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import listen

EXPECTED = Expected(cause="sidecar-redirects", hosts=("h1",), at_least=3, held_back=True)


def apply(bed: Bed, host: str = "h1") -> None:
    """A service mesh with an exception for the one port that people know."""
    listen(bed, host, 15001, "")
    bed[host].nft(
        """table ip mesh {
 chain output {
  type nat hook output priority -100;
  ip daddr 127.0.0.0/8 return
  tcp dport 29500 return
  tcp dport 1024-65535 redirect to :15001
 }
}
"""
    )
