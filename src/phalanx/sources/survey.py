"""What a file as a whole tells: which ranks speak in it, how far each came, how it ended, what framework it is.

Only the head and the tail of a large file are surveyed; the scanner sees all of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from phalanx.model.ranks import LARGEST_WORLD
from phalanx.sources.dialects import Dialect
from phalanx.sources.metrics import Metrics
from phalanx.sources.progress import Position
from phalanx.sources.scanner import Needle, NeedleSet
from phalanx.sources.shapes import FOLDED, PLAIN, is_ordinary_line, shape_of
from phalanx.sources.signs import SignSet
from phalanx.sources.text import clean, without_endless_words

_STATEMENTS = (
    r"\bworld[_ -]?size\W{1,4}(\d{1,6})\b",
    r"\bWORLD_SIZE\W{1,2}(\d{1,6})\b",
    r"\bnranks[ =](\d{1,6})\b",
    r"\bMEMBER: \d+/(\d{1,6})\b",
    r"--nproc[_-]per[_-]node[= ](\d{1,4})\b",
    r"\bnnodes=1, num_local_procs=(\d{1,4})\b",
    r"\bhorovodrun\b.*? -np (\d{1,5})\b",
    r"\bmpirun\b.*? -(?:np|n) (\d{1,5})\b",
    r"\bStarting with (\d{1,5}) processes\b",
    r"\bnum_workers = (\d{1,5}), local_devices\b",
    r"\bclients\. \d+/(\d{1,5}) clients joined",
    r"Waiting for \d+/(\d{1,5}) tasks to connect",
    r"\b(\d{1,5}) replicas in sync",
    r"\brank:? \d+ ?(?:/|of) ?(\d{1,6})\b",
    r"\b(?:train|runn|start|launch)ing (?:on|with|over) (\d{1,6}) process(?:es|\(es\))?(?: |,|$)",
    r"\brank\W{1,2}\d{1,6}\W{1,3}size\W{1,2}(\d{1,6})\b",
)
_STATEMENT = [re.compile(statement.encode(), re.I) for statement in _STATEMENTS]
_ANY_STATEMENT = re.compile("|".join(_STATEMENTS).encode(), re.I)
_LABEL = re.compile(r"\W?[Rr]ank[ _:=]?(?=\d)")
_HELD_BACK = "x across cluster]"  # Ray prints once, seconds later, what several workers had said alike
_OPENING = 24  # lines before the first step that are kept
_MOST_REPEATS = 20  # lines that are compared
_SHORT = 160  # characters: longer ones are seldom what a script tells of itself
_LONGEST = 2048  # bytes of a line that are surveyed
_PLAIN = bytes([*b"\t\n", *range(0x20, 0x7F)])


@dataclass(slots=True)
class RankSurvey:
    """One rank within one file."""

    lines: int = 0
    last_line: int = 0
    last_text: str = ""
    repeats: int = 1  # how many of its last lines say the same as the very last, if that tells of no step
    first_progress: int | None = None
    last_progress: int | None = None
    position: Position | None = None
    finished: int | None = None
    last_ordinary: int = 0  # the last line without a word of trouble
    last_moving: int = 0  # the last bar or rate
    last_connected: int = 0  # the last line that says that peers were found
    recent_progress: tuple[int, ...] = ()  # the last few lines of progress
    recent_reports: tuple[str, ...] = ()  # the same, as they are, with their times
    opening: list[tuple[int, str]] = field(default_factory=list)  # what it says with numbers before it trains
    metrics: Metrics | None = None


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
    is_partly_read: bool = False  # the time limit was over before all of it was read
    is_cut: bool = False  # an excerpt: it begins in the middle, lines were left out, or it was pasted into a report
    has_output: bool = True  # False of sentences only, as people write them and a few programs


@cache
def _world_needles() -> NeedleSet:
    return NeedleSet([Needle(statement, is_expression=True, ignores_case=True) for statement in _STATEMENTS])


def cleaned_lines(sample: bytes) -> list[str]:
    """The lines of a sample as text."""
    if not sample.translate(None, _PLAIN):  # most samples: nothing in them has to be taken out
        return [without_endless_words(line[:_LONGEST]).rstrip() for line in sample.decode().split("\n")]
    return [clean(raw[:_LONGEST]) for raw in sample.split(b"\n")]


def survey_sample(
    survey: FileSurvey,
    sample: bytes,
    first_line: int,
    dialect: Dialect,
    signs: SignSet,
    lines: Sequence[str] | None = None,
) -> None:
    """Add a stretch of the file to its survey; `lines`: its `cleaned_lines`, where they are known."""
    for sign, count in signs.count(sample).items():
        survey.signs[sign] += count
    survey.world_sizes.extend(_world_sizes(sample))
    said: dict[int | None, list[tuple[int, str]]] = defaultdict(list)
    redrawn = dict(_redrawn_lines(sample)) if b"\r" in sample else {}
    for index, whole in enumerate(cleaned_lines(sample) if lines is None else lines):
        number = first_line + index
        for line in redrawn.get(index) or _apart(whole):
            if line:
                speaker, text = dialect.read(line)
                said[speaker.rank].append((number, text))
                if speaker.host and speaker.rank is not None and speaker.rank not in survey.hosts:
                    survey.hosts[speaker.rank] = speaker.host
    for rank, spoken in said.items():
        _survey_rank(survey.ranks.setdefault(rank, RankSurvey()), spoken)
        survey.last_line = max(survey.last_line, spoken[-1][0])


def _apart(line: str) -> Sequence[str]:
    """The lines of several ranks that wrote at once, before either wrote its end: `[rank 0] step 6 loss 0.3[rank 2] step 6 loss 0.3`."""
    if "ank" not in line[:5] or (label := _LABEL.match(line)) is None or line.find(label[0], label.end()) < 0:
        return (line,)
    return re.split(rf"(?<=[\w.)\]%])(?={re.escape(label[0])}\d)", line)


def _redrawn_lines(sample: bytes) -> Iterator[tuple[int, list[str]]]:
    """Lines in which a bar was drawn over and over: which, and all that stood there."""
    for index, raw in enumerate(sample.split(b"\n")):
        if b"\r" in raw:
            yield index, [clean(part[:_LONGEST]) for part in raw.split(b"\r")]


def _world_sizes(sample: bytes) -> Iterator[int]:
    """What lines of the sample state of the job's size. Only lines that the scanner picked are looked at, for that only."""
    picked: dict[tuple[int, int], set[int]] = {}
    start, stop = 0, -1
    for end, number in _world_needles().scan(sample):
        if end > stop:
            start, stop = sample.rfind(b"\n", 0, end) + 1, sample.find(b"\n", end)
            stop = stop if stop >= 0 else len(sample)
        picked.setdefault((start, stop), set()).add(number)
    for (start, stop), numbers in picked.items():
        pattern = _STATEMENT[numbers.pop()] if len(numbers) == 1 else _ANY_STATEMENT
        for match in pattern.finditer(sample, start, min(stop, start + 4096)):
            size = int(next(value for value in match.groups() if value is not None))
            if 0 < size <= LARGEST_WORLD:
                yield size


def _survey_rank(entry: RankSurvey, spoken: Sequence[tuple[int, str]]) -> None:
    """Take in the lines of one rank, given with their numbers."""
    entry.lines += len(spoken)
    entry.last_line, entry.last_text = spoken[-1][0], spoken[-1][1][:300]
    opens = entry.first_progress is None and len(entry.opening) < _OPENING
    shape = PLAIN
    for number, text in spoken:
        if _HELD_BACK in text:
            continue
        shape = shape_of(text)
        if shape is PLAIN or shape.is_plain:
            if opens and len(text) < _SHORT:
                entry.opening.append((number, text))
                opens = len(entry.opening) < _OPENING
            continue
        if shape.shows_progress:
            position = shape.position_in(text)
            entry.first_progress = number if entry.first_progress is None else entry.first_progress
            entry.last_progress = number
            entry.recent_progress = (*entry.recent_progress[-2:], number)
            entry.recent_reports = (*entry.recent_reports[-3:], text)
            opens = False
            entry.position = max(entry.position or position, position)
            entry.metrics = entry.metrics or Metrics()
            entry.metrics.take(number, position, text, shape.numbers)
        if shape.shows_end:
            entry.finished = number
        if shape.shows_movement:
            entry.last_moving = number
        if shape.shows_connection:
            entry.last_connected = number
    # Whether a line is ordinary is slow to tell, and only the last of them matters.
    last = next((number for number, text in reversed(spoken) if is_ordinary_line(text)), None)
    entry.last_ordinary = last or entry.last_ordinary
    entry.repeats = _repeats([text for _, text in spoken[-_MOST_REPEATS:]]) if shape is PLAIN or shape.is_plain else 1


def _repeats(texts: list[str]) -> int:
    """How many of the last lines are alike but for numbers."""
    alike = [text.encode(errors="replace").translate(FOLDED) for text in texts]
    return next((count for count, text in enumerate(reversed(alike)) if text != alike[-1]), len(alike))


SUPERVISED = "phalanx run"
_BEYOND_DOUBT = 1_000_000  # a launcher knows what it started, whatever words stand in the output


def state_manifest(survey: FileSurvey, data: bytes) -> None:
    """Take size and framework from a bundle's manifest; nothing if the record is another one."""
    if b'"phalanx.bundle/' not in data[:200]:
        return
    try:
        manifest = json.loads(data)
        size, framework = int(manifest["size"]), str(manifest["framework"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    survey.signs[SUPERVISED] = _BEYOND_DOUBT
    survey.signs[framework] = _BEYOND_DOUBT
    if 0 < size <= LARGEST_WORLD:
        survey.world_sizes.extend([size] * 1000)
