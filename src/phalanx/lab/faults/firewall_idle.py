"""A firewall forgets connections that were idle for a while, and drops what comes on them then."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="idle-connections-forgotten", symptom="fail.communication-error", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", seconds: int = 1) -> None:
    """The emulation of a time-out that is minutes or hours in the field."""
    bed[host].write("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", str(seconds))
    bed[host].write("/proc/sys/net/netfilter/nf_conntrack_tcp_loose", "0")
    bed[host].filter("ct state invalid drop", "ct state new tcp flags & (syn | ack) != syn drop")
