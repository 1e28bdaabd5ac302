"""The study reproduced from the authors' files: tables, agreement, plots, one page."""

from phalanx.study.reproduce.study import Study, read_study
from phalanx.study.reproduce.write import Written, reproduce, summarise

__all__ = ["Study", "Written", "read_study", "reproduce", "summarise"]
