"""The verdict from collective traces: who broke formation, in what way, and who merely waits for it."""

from __future__ import annotations

from phalanx.diagnosis.collective_analysis.mismatch import find_mismatches
from phalanx.diagnosis.collective_analysis.moments import why_moving
from phalanx.diagnosis.collective_analysis.observation import Break, Observation, observation
from phalanx.diagnosis.collective_analysis.stalls import find_stalls
from phalanx.diagnosis.collective_analysis.stragglers import find_stragglers
from phalanx.diagnosis.collective_analysis.trace_state import trace_state_of
from phalanx.model import Unchecked
from phalanx.model.trace import Traces

__all__ = ["Break", "Observation", "observe"]


def observe(traces: Traces, unchecked: list[Unchecked] | None = None) -> list[Observation]:
    """What is wrong, the deepest first. Neither the order of the files nor the ranks' clocks have a part in it.

    What could not be judged is added to `unchecked`.
    """
    state = trace_state_of(traces)
    mismatches = find_mismatches(traces, state)
    if any(not one.is_past for one in mismatches):
        return mismatches  # who is missing, dead or behind after calls that did not fit is their victim
    moving = why_moving(traces, state)
    if moving is None:
        stalls = find_stalls(traces, state) or _find_gone(traces)
        return stalls or mismatches or find_stragglers(traces, state)
    if unchecked is not None:
        unchecked.append(Unchecked(moving, "traces of all ranks, written while the job stands still"))
    return mismatches or find_stragglers(traces, state)


def _find_gone(traces: Traces) -> list[Observation]:
    """Ranks that a report calls dead although nobody is seen to wait for them: it tells of calls only where their counts differ."""
    gone = dict(one for file in traces.files for one in file.gone)
    others = tuple(sorted(traces.ranks - set(gone)))
    if not gone or len(gone) >= len(others):  # where most are gone, it is the one that was asked that is cut off
        return []
    return [observation(Break.GONE, tuple(sorted(gone)), others, None, others[0], processes=tuple(gone.values()))]
