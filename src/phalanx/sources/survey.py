"""What a file as a whole tells: which ranks speak in it, how far each came, how it ended, what framework it is.

Only the head and the tail of a large file are surveyed; the scanner sees all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from phalanx.sources.dialects import Dialect
from phalanx.sources.progress import Position, position_of, shows_end
from phalanx.sources.scanner import Needle, NeedleSet
from phalanx.sources.signs import SignSet
from phalanx.sources.text import clean

_WORLD = re.compile(
    r"\bworld[_ -]?size\W{1,4}(\d{1,6})\b|\bWORLD_SIZE\W{1,2}(\d{1,6})\b|\bnranks[ =](\d{1,6})\b|\bMEMBER: \d+/(\d{1,6})\b"
    r"|--nproc[_-]per[_-]node[= ](\d{1,4})\b|\bhorovodrun\b.*? -np (\d{1,5})\b|\bmpirun\b.*? -(?:np|n) (\d{1,5})\b"
    r"|\bStarting with (\d{1,5}) processes\b|\bnum_workers = (\d{1,5}), local_devices\b|\bclients\. \d+/(\d{1,5}) clients joined|Waiting for \d+/(\d{1,5}) tasks to connect|\b(\d{1,5}) replicas in sync|\brank:? \d+ ?(?:/|of) ?(\d{1,6})\b",
    re.I,
)
_LARGEST_WORLD = 200_000


@dataclass(slots=True)
class RankSurvey:
    """One rank within one file."""

    lines: int = 0
    last_line: int = 0
    last_text: str = ""
    first_progress: int | None = None
    last_progress: int | None = None
    position: Position | None = None
    finished: int | None = None


@dataclass(slots=True)
class FileSurvey:
    """One file. `ranks[None]` holds what no rank could be named for."""

    name: str
    rank: int | None = None
    size: int = 0
    last_line: int = 0
    ranks: dict[int | None, RankSurvey] = field(default_factory=dict)
    signs: Counter[str] = field(default_factory=Counter)
    hosts: dict[int, str] = field(default_factory=dict)
    world_sizes: list[int] = field(default_factory=list)
    prose: str | None = None
    messages: tuple[str, ...] = ()  # of a report: lines in which programs speak of trouble

    @property
    def is_report(self) -> bool:
        """A person wrote it, so the order of its lines is not the order of events."""
        return self.prose is not None


_WORLD_NEEDLES = NeedleSet([Needle(_WORLD.pattern, is_expression=True, ignores_case=True)])


def survey_sample(survey: FileSurvey, sample: bytes, first_line: int, dialect: Dialect, signs: SignSet) -> None:
    """Add a stretch of the file to its survey."""
    survey.signs.update(signs.count(sample))
    survey.world_sizes.extend(_world_sizes(sample))
    for index, raw in enumerate(sample.split(b"\n")):
        for part in raw.split(b"\r"):
            _survey_line(survey, clean(part[:2048]), first_line + index, dialect)


def _world_sizes(sample: bytes) -> Iterator[int]:
    """What lines of the sample state of the job's size. The slow expression only sees lines that the scanner picked."""
    done = -1
    for end, _ in _WORLD_NEEDLES.scan(sample):
        if end <= done:
            continue
        start, stop = sample.rfind(b"\n", 0, end) + 1, sample.find(b"\n", end)
        done = stop if stop >= 0 else len(sample)
        for match in _WORLD.finditer(sample[start : min(done, start + 4096)].decode("utf-8", "replace")):
            size = int(next(value for value in match.groups() if value is not None))
            if 0 < size <= _LARGEST_WORLD:
                yield size


def _survey_line(survey: FileSurvey, line: str, number: int, dialect: Dialect) -> None:
    if not line.strip():
        return
    speaker, text = dialect.read(line)
    entry = survey.ranks.setdefault(speaker.rank, RankSurvey())
    entry.lines += 1
    entry.last_line, entry.last_text = number, text[:300]
    survey.last_line = max(survey.last_line, number)
    if speaker.rank is not None and speaker.host and speaker.rank not in survey.hosts:
        survey.hosts[speaker.rank] = speaker.host
    position = position_of(text)
    if position is not None:
        entry.first_progress = number if entry.first_progress is None else entry.first_progress
        entry.last_progress = number
        entry.position = max(entry.position or position, position)
    if shows_end(text):
        entry.finished = number
