"""Readers of what a job leaves behind: files in, events out."""

from phalanx.sources.collect import Collector, Match, Observations, Pattern
from phalanx.sources.inputs import Input, find_inputs, from_text
from phalanx.sources.survey import FileSurvey, RankSurvey

__all__ = [
    "Collector",
    "FileSurvey",
    "Input",
    "Match",
    "Observations",
    "Pattern",
    "RankSurvey",
    "find_inputs",
    "from_text",
]
