"""Decides which ranks are to blame for a failure, from one table of where every rank stood.

The table is filled by whoever has evidence (`diagnose` from logs, `run` from live stacks, traces from recorders); nothing
in this package knows of logs or processes. `accuse` asks an ordered list of small strategies and returns the first answer.
"""

from phalanx.blame.engine import accuse
from phalanx.blame.table import (
    NOBODY,
    About,
    Accusation,
    Coverage,
    Doing,
    Ending,
    GroupCall,
    Line,
    RankState,
    RankTable,
    Words,
)

__all__ = [
    "NOBODY",
    "About",
    "Accusation",
    "Coverage",
    "Doing",
    "Ending",
    "GroupCall",
    "Line",
    "RankState",
    "RankTable",
    "Words",
    "accuse",
]
