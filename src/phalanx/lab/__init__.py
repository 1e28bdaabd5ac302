"""The lab: networks of several hosts on one machine, whole or broken in a chosen way, to rehearse a failure."""

from phalanx.lab.bed import Bed
from phalanx.lab.errors import LabError
from phalanx.lab.host import Host

__all__ = ["Bed", "Host", "LabError"]
