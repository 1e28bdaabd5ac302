"""The vocabulary everything else speaks: what was observed, what is concluded, what is reported."""

from phalanx.model.event import Event, EventKind, Frame
from phalanx.model.finding import Basis, Confidence, Evidence, Finding, Fix, Place, Role, Safety
from phalanx.model.report import Report
from phalanx.model.stage import Stage
from phalanx.model.world import Host, Rank, Unchecked, World

__all__ = [
    "Basis",
    "Confidence",
    "Event",
    "EventKind",
    "Evidence",
    "Finding",
    "Fix",
    "Frame",
    "Host",
    "Place",
    "Rank",
    "Report",
    "Role",
    "Safety",
    "Stage",
    "Unchecked",
    "World",
]
