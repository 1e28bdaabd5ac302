"""The verdict from collective traces: who broke formation, in what way, and who merely waits for it."""

from __future__ import annotations

from phalanx.diagnose.formation.mismatch import find_mismatches
from phalanx.diagnose.formation.moments import why_moving
from phalanx.diagnose.formation.observation import Break, Observation
from phalanx.diagnose.formation.stalls import find_stalls
from phalanx.diagnose.formation.standing import standing_of
from phalanx.diagnose.formation.stragglers import find_stragglers
from phalanx.model import Unchecked
from phalanx.model.trace import Traces

__all__ = ["Break", "Observation", "observe"]


def observe(traces: Traces, unchecked: list[Unchecked] | None = None) -> list[Observation]:
    """What is wrong, the deepest first. Neither the order of the files nor the ranks' clocks have a part in it.

    What could not be judged is added to `unchecked`.
    """
    standing = standing_of(traces)
    mismatches = find_mismatches(traces, standing)
    if any(not one.is_past for one in mismatches):
        return mismatches  # who is missing, dead or behind after calls that did not fit is their victim
    moving = why_moving(traces, standing)
    if moving is None:
        return find_stalls(traces, standing) or mismatches or find_stragglers(traces, standing)
    if unchecked is not None:
        unchecked.append(Unchecked(moving, "traces of all ranks, written while the job stands still"))
    return mismatches or find_stragglers(traces, standing)
