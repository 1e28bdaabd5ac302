"""Reads every input once and gathers what it holds: events, lines that rules asked for, and a survey of each file."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import BinaryIO

import hyperscan

from phalanx.model import Event, EventKind, Unchecked
from phalanx.sources.cuts import begins_within, leaves_out
from phalanx.sources.dialects import Dialect, sniff
from phalanx.sources.filenames import local_ranks, ranks_of_files
from phalanx.sources.gate import GatedNeedles
from phalanx.sources.inputs import DAMAGE, Input, TooMuchError, looks_binary, plain_stream, unread
from phalanx.sources.labels import learn
from phalanx.sources.numbering import Gaps
from phalanx.sources.observations import Match, Observations, Pattern, captures_of, needles_of
from phalanx.sources.pasted import Reduction, is_all_words, program_output
from phalanx.sources.patience import UNLIMITED, OutOfTimeError, Patience, middle_left_out, never_opened
from phalanx.sources.readers import Reader, load_readers
from phalanx.sources.records import read_record
from phalanx.sources.scanner import EDGE, Needle, NeedleSet, Piece, hits, pieces, refused_expressions, room_for_pieces
from phalanx.sources.second_look import SecondLook
from phalanx.sources.secrets import redact
from phalanx.sources.signs import SignSet
from phalanx.sources.survey import FileSurvey, cleaned_lines, state_manifest, survey_sample
from phalanx.sources.window import Window
from phalanx.sources.wrapping import TrueLine, unwrapped

_SAMPLE_BUDGET = 1 << 20  # bytes of heads, and as many of tails, surveyed in all
_LEAST_SAMPLE, _MOST_SAMPLE = 4 << 10, 256 << 10
_LEAST_HEAD = 2 << 10  # the heads of hundreds of ranks are all alike; their ends are not
_KEPT = 3  # matches kept of one pattern, rank and file: this many of the first, and of the last
_TRIED = 2000  # lines of one file of many ranks on which one pattern is tried
_LOOKED_AGAIN = 500  # lines of one piece with one needle, if its first was not what is meant
_KEPT_EVENTS = 300  # events kept of one file's beginning, and as many of its end
_LONGEST_MESSAGE = 16 << 10  # characters of an event that rules are asked about
_READ, _READ_AT_END = 75, 1500  # times one reader looks at one piece: the end of a log tells more than its middle


class Collector:
    """Compiled once for a set of patterns; reads any number of inputs."""

    def __init__(self, patterns: Sequence[Pattern], signs: Mapping[str, re.Pattern[str]]) -> None:
        self._patterns, self._signs = patterns, signs
        self.patterns_at: dict[int, list[Pattern]] = {}
        self.readers_at: dict[int, list[Reader]] = {}

    @cached_property
    def signs(self) -> SignSet:
        """The signs, compiled."""
        return SignSet(self._signs)

    @cached_property
    def needles(self) -> NeedleSet:
        """What is searched for, compiled once there is something to search: collective traces alone need none of it."""
        try:
            return self._prepare(self._patterns, frozenset())
        except hyperscan.error:  # seldom: an expression that the engine does not take
            common = [pattern.expression.pattern for pattern in self._patterns if pattern.is_common]
            return self._prepare(self._patterns, refused_expressions(common))

    @cached_property
    def second_look(self) -> SecondLook:
        """For needles that are looked for once in a piece, if their first occurrence is not what is meant."""
        return SecondLook(self.needles.needles)

    def _prepare(self, patterns: Sequence[Pattern], refused: Collection[str]) -> NeedleSet:
        numbers: dict[Needle, int] = {}
        self.patterns_at, self.readers_at = defaultdict(list), defaultdict(list)
        for pattern in patterns:
            for needle in needles_of(pattern, refused):
                self.patterns_at[numbers.setdefault(needle, len(numbers))].append(pattern)
        for reader in load_readers():
            for literal in reader.TRIGGERS:
                self.readers_at[numbers.setdefault(Needle(literal), len(numbers))].append(reader)
        return NeedleSet(list(numbers))

    def collect(
        self,
        inputs: Sequence[Input],
        progress: Callable[[int], None] | None = None,
        names: Sequence[str] = (),
        patience: Patience = UNLIMITED,
    ) -> Observations:
        """Read all inputs; `progress` is told the number of bytes read as they are read. `names`: of all inputs, if these are a part."""
        found = Observations()
        if not inputs:
            return found
        needles, room = GatedNeedles(self.needles), room_for_pieces()
        names = names or [one.name for one in inputs]
        ranks, local = ranks_of_files(names), local_ranks(names)
        sample = max(_LEAST_SAMPLE, min(_MOST_SAMPLE, _SAMPLE_BUDGET // len(names)))
        for one in inputs:
            if patience.is_over:
                found.unchecked.append(never_opened([left.name for left in inputs[inputs.index(one) :]]))
                break
            try:
                with one.open() as raw, _FileReader(self, needles, found, one, ranks.get(one.name), sample) as reader:
                    reader.is_local = one.name in local
                    stream, reduction = plain_stream(raw), None
                    if reader.may_be_report:
                        stream, reduction = program_output(stream, one.name)
                    stream, true_line = unwrapped(stream)
                    reader.read(stream, progress, room, stream is raw, true_line, patience)
                    reader.end(reduction)
            except DAMAGE as error:  # what was read of it counts, and the rest is still read
                found.unchecked.append(unread(one.name, error))
        return found


class _FileReader:
    """Reads one file into the observations."""

    def __init__(
        self, owner: Collector, needles: GatedNeedles, found: Observations, one: Input, rank: int | None, sample: int
    ) -> None:
        self._owner, self._needles, self._found, self._input, self._sample = owner, needles, found, one, sample
        self._survey = FileSurvey(one.name, rank)
        self._dialect = Dialect(file_rank=rank)
        self._tail, self._tail_stop = b"", 1  # the end of what was read, and the number of the line that comes then
        self._gaps: Gaps | None = None
        self._is_log = False
        self.is_local = False  # its name tells the rank within a node only
        self._kept: Counter[tuple[Hashable, int | None]] = Counter()
        self._late: dict[tuple[Hashable, int | None], deque[Match]] = {}
        self._tried: Counter[Hashable] = Counter()
        self._shown: set[Hashable] = set()  # patterns that are wanted once and were found
        self._done: set[int] = set()  # needles of which nothing more is learned before the file's end
        self._first: list[Event] = []
        self._last: deque[Event] = deque(maxlen=_KEPT_EVENTS)

    def __enter__(self) -> _FileReader:
        return self

    def __exit__(self, kind: object, error: object, *_: object) -> None:
        """Hand over what was read, also of a file that breaks off in the middle."""
        if isinstance(error, OutOfTimeError | TooMuchError):
            self._survey.is_partly_read = True
        if not self._is_log:
            return
        if self._survey.size > self._sample:
            first = self._tail_stop - self._tail.count(b"\n")
            survey_sample(self._survey, self._tail, first, self._dialect, self._owner.signs)
        self._found.matches.extend(match for late in self._late.values() for match in late)
        self._found.events.extend([*self._first, *self._last])
        self._found.files.append(self._survey)

    def read(
        self,
        stream: BinaryIO,
        progress: Callable[[int], None] | None,
        room: bytearray,
        is_plain: bool,
        true_line: TrueLine | None,
        patience: Patience,
    ) -> None:
        """Read the whole stream; `is_plain` if it holds the bytes of the file as they are, `true_line` if not even its lines."""
        if is_plain and self._input.path is not None:
            self._gaps = Gaps(self._input.path, self._sample)
        for piece in pieces(stream, gaps=self._gaps, room=room, true_line=true_line, patience=patience):
            if piece.is_first and not self._begin(piece):
                return
            if piece.skipped:
                self._survey.is_partly_read = True
                self._survey.size += piece.skipped
                self._found.unchecked.append(middle_left_out(self._input.name, piece.skipped))
            self._scan(piece)
            read = piece.limit if not piece.is_last else len(piece.data)
            self._survey.size += read
            if progress is not None:
                progress(read)
            self._keep_tail(piece, read)
        if self._survey.size == 0:
            self._is_log = True
            self._found.unchecked.append(
                Unchecked(f"{self._input.name}: empty", "the output of the rank, if it had any")
            )

    @property
    def may_be_report(self) -> bool:
        """Nobody names a report after a rank."""
        return self._survey.rank is None and not self.is_local

    def end(self, reduction: Reduction | None) -> None:
        """Mark what was cut out of a report: who is not in it may just not have been pasted."""
        if reduction is not None:
            self._survey.is_cut = self._survey.has_output = reduction.kept > 0
            if not reduction.kept:
                self._survey.signs.update(self._owner.signs.count(reduction.head))

    def _keep_tail(self, piece: Piece, read: int) -> None:
        """Keep the last bytes read, from a line start, for the survey: the end of this piece, behind what is left."""
        wanted = self._sample
        tail = bytes(piece.data[max(read - wanted - 1, 0) : read])
        if read < wanted:
            tail = self._tail + tail
        if len(tail) > wanted:
            tail = tail[tail.find(b"\n", len(tail) - wanted) + 1 :]
        self._tail = tail
        if piece.is_last:
            self._tail_stop = piece.line_at(read)

    def _begin(self, piece: Piece) -> bool:
        """Look at the head: a record, binary or a log; settle how the file marks its ranks."""
        is_one_of_many = self._sample == _LEAST_SAMPLE < len(piece.data)
        head = bytes(piece.data[: _LEAST_HEAD if is_one_of_many else self._sample])
        name = self._input.name
        record = read_record(name, bytes(piece.data), self._survey.rank) if piece.is_last else None
        if record is not None:
            self._found.events.extend(record)
            self._survey.size = len(piece.data)
            state_manifest(self._survey, bytes(piece.data))
            self._found.files.append(self._survey)
            return False
        if looks_binary(bytes(piece.data[:8192])):
            needs = "a text log; traces and archives of this kind are not read by this version"
            self._found.unchecked.append(Unchecked(f"{name}: binary file", needs))
            return False
        lines = cleaned_lines(head)
        labels = learn(piece.data)
        if self.is_local:
            self._survey.rank = labels.only_rank  # the name of the file only tells the rank within its node
        elif labels.are_several:
            self._survey.rank = None  # the name of the file numbers a node
        self._dialect = sniff(lines[:2000], self._survey.rank)
        self._dialect.labels = labels
        survey_sample(self._survey, head, 1, self._dialect, self._owner.signs, lines)
        self._survey.is_cut = begins_within(lines, self._dialect) or leaves_out(head)
        self._survey.has_output = not (piece.is_last and self.may_be_report and is_all_words(lines))
        self._is_log = True
        return True

    def _scan(self, piece: Piece) -> None:
        looked: Counter[str] = Counter()
        most = _READ_AT_END if piece.is_last else _READ
        unmeant: set[int] = set()  # needles that stand on a line of which nothing else was asked
        for hit in hits(piece, self._needles, self._done):
            is_tail = piece.is_last and hit.start >= len(piece.data) - EDGE
            window: Window | None = None
            for number in hit.needles:
                for pattern in self._owner.patterns_at.get(number, ()):
                    if is_tail or not self._is_known(pattern):
                        self._tried[pattern.key] += 1
                        window = window or Window(self._input.name, piece, hit, self._dialect)
                        self._try(pattern, window, window.text, None)
                        if pattern.once and pattern.key not in self._shown:
                            unmeant.add(number)
                if number not in self._owner.readers_at and all(map(self._is_known, self._owner.patterns_at[number])):
                    self._done.add(number)
            readers = [reader for number in hit.needles for reader in self._owner.readers_at.get(number, ())]
            for reader in dict.fromkeys(readers):
                looked[reader.__name__] += 1
                if looked[reader.__name__] <= most:
                    window = window or Window(self._input.name, piece, hit, self._dialect)
                    for event in reader.read(window):
                        self._add(event, window)
        if unmeant:
            self._look_again(piece, unmeant)

    def _look_again(self, piece: Piece, numbers: set[int]) -> None:
        """Try what is wanted once on all other lines with these needles: only their first ones were looked for."""
        self._owner.second_look.prepare(numbers)
        wanted = {number: self._owner.patterns_at[number] for number in numbers}
        looked: Counter[int] = Counter()
        for hit in hits(piece, self._owner.second_look):
            window: Window | None = None
            for number in hit.needles & wanted.keys():
                window = window or Window(self._input.name, piece, hit, self._dialect)
                for pattern in wanted[number]:
                    if pattern.key not in self._shown:
                        self._try(pattern, window, window.text, None)
                looked[number] += 1
                if looked[number] >= _LOOKED_AGAIN or all(one.key in self._shown for one in wanted[number]):
                    del wanted[number]
            if not wanted:
                return

    def _is_known(self, pattern: Pattern) -> bool:
        """Nothing is learned from another match before the file's end: it has been seen, or tried often enough."""
        kept = self._kept[(pattern.key, self._survey.rank)]
        if kept and (pattern.once or (self._survey.rank is not None and kept >= 2 * _KEPT)):
            return True
        return self._tried[pattern.key] >= _TRIED

    def _add(self, event: Event, window: Window) -> None:
        """Keep an event, and try the patterns on an exception's whole message, which may span lines."""
        (self._first if len(self._first) < _KEPT_EVENTS else self._last).append(event)
        if event.kind is EventKind.EXCEPTION:
            message = event.text[:_LONGEST_MESSAGE]
            numbers = {number for _, number in self._owner.needles.scan(message.encode("utf-8", "replace"))}
            for number in numbers:
                for pattern in self._owner.patterns_at.get(number, ()):
                    self._try(pattern, window, message, event)

    def _try(self, pattern: Pattern, window: Window, text: str, event: Event | None) -> None:
        match = pattern.expression.search(text)
        if match is None:
            return
        rank = event.rank if event is not None else window.speaker.rank
        slot = (pattern.key, rank)
        self._kept[slot] += 1
        if pattern.once:
            self._shown.add(pattern.key)
        captures = {name: redact(value) for name, value in captures_of(match).items()}
        after = self._trained_before(rank, window)
        made = Match(pattern.key, event or window.line_event, captures, after)
        if self._kept[slot] <= _KEPT:
            self._found.matches.append(made)
        else:  # the last ones matter most: what a rank got over a hundred times may still have ended it
            self._late.setdefault(slot, deque(maxlen=_KEPT)).append(made)

    def _trained_before(self, rank: int | None, window: Window) -> bool:
        entry = self._survey.ranks.get(rank)
        is_known = entry is not None and entry.first_progress is not None and entry.first_progress < window.number
        return is_known or window.shows_training_before
