"""Takes off what stands before every line of a log and says nothing of it, whatever it is: the same words, times and numbers of the same form.

INFO:root:  File "train.py", line 9                        a script that hands the output of another to its logger
2026-11-17 05:01:02.123 | ERROR    | run:pump:118 - …      the same with Loguru
I 2026-11-17T05:01:02Z workerpool0-0 …                     Vertex AI
trainer_1  | …   algo-1  | …   [train : step-run] …        docker compose, SageMaker, Tekton; of one container
node1: …   [node1] out: …   10.0.0.5: …                    pdsh, Fabric, clush; of one host

It must stand before all but a few lines, and behind it must stand what programs put at the beginning of a line: a frame of a traceback,
a rank. Where it tells hosts or ranks apart it stays, in a form that `dialects` knows. A date and time stay too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from phalanx.sources.dialects import Dialect, sniff
from phalanx.sources.text import clean

_SCOPE = 240  # bytes of a line in which its prefix ends
_MOST_OTHERS = 0.05  # of the lines: a launcher's own, or those of a shell at the end
_FEWEST = 4  # lines
_FEW, _FIRST = 8, 32  # so many lines are compared first, and so many bytes of them
_MOST_WORDS = 12  # with digits: of a date, a time, a process, a place in the code
_COMPARED = 60  # lines, at most; the prefix that they have is then looked for in all
_UNDERSTOOD = 100  # lines of which it is asked whether `dialects` understands them
# What is at the beginning of a line if nothing was put before it; asked for at once, before anything is compared.
_SIGNS = (b'File "', b"Traceback (most", b"[rank", b"<std", b"[default", b"=====", b" 00:00:", b" tensorflow/")
_BEGINNING = re.compile(
    rb" {1,40}File \"[^\"\n]{1,200}\", line \d|Traceback \(most recent call last\)|\[(?:rank|default)\d+\]:|\[\d+(?:,\d+)?\]<std(?:out|err)>|={20}|[IWEF]\d{4} \d\d:\d\d:\d|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
)
_STEPS = re.compile(rb"(?:\[\d{1,4}\] )?(?:[Ss]tep|[Ee]poch|[Ii]ter(?:ation)?)s?\b[ :=\[]{0,3}\d")
_CLOSES = (b":", b"|", b"]", b">", b")", b"-", b"*", b"#", b"$")
_NAMES = re.compile(rb"[^\W\d_]{4}|[|>$#*]")  # what more than a time has
_LEVEL = rb"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TOKEN = rb"(?:^ +|(?<=\[) +)?(?=[\w.-]{0,119}\d)[\w.-]{1,120}"  # a word with digits; numbers are aligned with spaces before them
_WORD = re.compile(rb"(?P<pad>^ +|(?<=\[) +)?(?P<word>[\w.-]{1,120})(?P<space> *)")
_LEVELS = frozenset((b"DEBUG", b"INFO", b"WARN", b"WARNING", b"ERROR", b"CRITICAL", b"FATAL"))
_LETTERS, _DIGITS = (b"I", b"W", b"E", b"D", b"F"), range(0x30, 0x3A)
_DAYS = frozenset(_DAY[3:-1].split(b"|"))
_ALIKE = bytes.maketrans(b"123456789DWECF", b"000000000IIIII")  # digits, and what levels begin with
# What stands in a shape for what changes from line to line: a letter for a level at the very first, a level's name and the spaces behind it,
# a name of a day or a month, a word with digits. And how it is found again.
_AGAIN = {0x01: rb"[IWEDF] ", 0x02: rb"%s\b *" % _LEVEL, 0x03: rb"%s {1,2}" % _DAY, 0x04: rb"((?>%s))" % _TOKEN}
_ENDS = b" \t:|]>)}-=\x07"  # what may be the last of a prefix
# What a line says of itself in its first words, and rules ask for.
_SPEAKS = re.compile(
    rb"NCCL|^\([\w.:<>]+ pid=|\b(?:kernel|slurmstepd|srun|mpirun|loss)\b|torch[./]|tensorflow/|\.(?:cc|cpp|cu|hpp|c):|(?:Error|Exception)\b|warning:|error:|fatal:"
)
_TELLS_STEPS = re.compile(rb"(?i)\b(?:step|epoch|iter|iteration|batch)\b\W{0,3}\d+")
_DATE = re.compile(rb"(?P<day>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?")
_CLOCK = re.compile(
    rb"\d{4}-\d\d-\d\d|\d{1,4}/\d\d?/\d{1,4}|\d{1,2}:\d\d:\d\d(?:[.,]\d+)?|(?:%s) {1,2}\d{1,2} |(?<=\d\d:\d\d:\d\d )\d{4}"
    % _DAY
)
_RANK_BEFORE = re.compile(rb"(?i)\brank[ :=_#]{0,2}$")
_ROLE = re.compile(rb"(?i)^(?:[\w.-]*[-_.])?(?:worker|trainer|replica)[-_.]?\d{1,4}$")

Unwrap = Callable[[bytes], bytes]


class _Prefix(NamedTuple):
    pattern: re.Pattern[bytes]
    labels: tuple[int, ...]  # groups that tell speakers apart
    lines: int  # that have it


def prefix_of(lines: Sequence[bytes], is_small: bool = True) -> Unwrap | None:
    """What takes the prefix off a line, told by some lines of the file that are not empty; None if there is none.

    Of a small file also a prefix before nothing but steps: it takes time, and steps are mostly understood with their prefix.
    """
    data = b"\n".join(lines)
    if len(lines) < _FEWEST or not (is_small or any(sign in data for sign in _SIGNS)):
        return None
    some = lines[:: len(lines) // _FEW + 1]
    firsts = Counter(line[:1].translate(_ALIKE) for line in some)
    if max(firsts.values()) < len(some) - 1 or not _common([_shape(line[:_FIRST]) for line in some]):
        return None  # said at once of most files
    shape = _common([_shape(line) for line in lines[:: len(lines) // _COMPARED + 1]])
    best: _Prefix | None = None
    for stop in range(1, len(shape) + 1):
        if shape.count(b"\x04", 0, stop) > _MOST_WORDS:
            break
        if (shape[stop - 1] in _ENDS or shape[stop - 1] <= 0x03) and shape[:stop].strip():
            found = _prefix(shape[:stop], lines, is_small)
            if found is not None and (best is None or found.lines >= best.lines):
                best = found  # the longest that no line lacks which has a shorter one: most lines may begin alike behind it
    return None if best is None else _unwrap(best)


def _shape(line: bytes) -> bytes:
    return _WORD.sub(_folded, line[:_SCOPE])


def _folded(match: re.Match[bytes]) -> bytes:
    word, space = match["word"], match["space"]
    if not word.isalpha():
        return b"\x04" + space if any(map(word.__contains__, _DIGITS)) else match[0]
    if match["pad"]:
        return match[0]
    if word in _LEVELS:
        return b"\x02"
    if word in _DAYS and 0 < len(space) <= 2:
        return b"\x03"
    return b"\x01" if match.start() == 0 and word in _LETTERS and space == b" " else match[0]


def _common(shapes: Sequence[bytes]) -> bytes:
    """What all but a few begin with."""
    left, least = list(shapes), len(shapes) - _others(shapes)
    place = 0
    while True:
        counts: dict[int, int] = {}
        for shape in left:
            if place < len(shape):
                counts[shape[place]] = counts.get(shape[place], 0) + 1
        best = max(counts, key=lambda one: counts[one], default=None)
        if best is None or counts[best] < least:
            return left[0][:place]
        left = [shape for shape in left if place < len(shape) and shape[place] == best]
        place += 1


def _others(lines: Sequence[bytes]) -> int:
    return max(1, int(_MOST_OTHERS * len(lines))) if len(lines) > _FEWEST else 0


def _prefix(shape: bytes, lines: Sequence[bytes], is_small: bool) -> _Prefix | None:
    """The prefix of this shape, if it is one and nobody needs it where it stands."""
    pattern = re.compile(b"".join(_AGAIN.get(one) or re.escape(bytes((one,))) for one in shape))
    found = [match for line in lines if (match := pattern.match(line[:_SCOPE])) is not None]
    if len(found) < len(lines) - _others(lines) or _says_something(found):
        return None
    rests = [match.string[match.end() :] for match in found]
    labels = _labels(found)
    if not any(map(_BEGINNING.match, rests)) and not (
        is_small and not labels and any(map(_STEPS.match, rests)) and _is_set_apart(found)
    ):
        return None
    if labels is None or (labels and len(found) < len(lines) and not _is_told(found, labels)):
        return None
    if _is_understood([match.string for match in found[:_UNDERSTOOD]], rests[:_UNDERSTOOD], bool(labels)):
        return None
    return _Prefix(pattern, labels, len(found))


def _is_set_apart(found: Sequence[re.Match[bytes]]) -> bool:
    """It has more than a time in it, ends with a sign that closes it, and holds no number that may be one of devices."""
    first = found[0]
    numbers = [group for group in range(1, first.re.groups + 1) if not first[group].strip()[:1].isalpha()]
    return (
        first[0].rstrip()[-1:] in _CLOSES
        and _NAMES.search(first[0]) is not None
        and all(_is_of_clock(found, group) for group in numbers)
    )


def _says_something(found: Sequence[re.Match[bytes]]) -> bool:
    """It is no prefix but the beginning of what lines say: a message, or steps that count."""
    texts = {match[0] for match in found[:_UNDERSTOOD]}
    told = {match[0] for text in texts if (match := _TELLS_STEPS.search(text))}
    return len(told) > 1 or any(map(_SPEAKS.search, texts))


def _labels(found: Sequence[re.Match[bytes]]) -> tuple[int, ...] | None:
    """Which of the changing words are names of who speaks; None if some are neither that nor clocks and counters."""
    labels = []
    for group in range(1, found[0].re.groups + 1):
        values = [match[group].strip() for match in found]
        kinds = set(values)
        if len(kinds) == 1 or _counts(values) or _is_of_clock(found, group):
            continue
        if len(kinds) > max(2, len(values) // 3):
            return None
        labels.append(group)
    return tuple(labels)


def _is_of_clock(found: Sequence[re.Match[bytes]], group: int) -> bool:
    """A part of a date or a time."""
    for match in found:
        start = match.end(group) - len(match[group].strip())
        if not any(clock.start() <= start < clock.end() for clock in _CLOCK.finditer(match[0])):
            return False
    return True


def _counts(values: Sequence[bytes]) -> bool:
    """Numbers that never fall: of lines, or seconds since the start."""
    try:
        numbers = [float(value.rstrip(b"Z")) for value in values]
    except ValueError:
        return False
    return len(set(values)) > len(values) // 3 and numbers == sorted(numbers)


def _is_told(found: Sequence[re.Match[bytes]], labels: Sequence[int]) -> bool:
    """Each name stands before more than one line."""
    names = [match[labels[0]].strip() for match in found]
    return all(names.count(name) > 1 for name in set(names))


def _is_understood(lines: Sequence[bytes], rests: Sequence[bytes], has_labels: bool) -> bool:
    """Ranks are told by it as it is, or it says beyond doubt that one rank speaks alone: `0: ` may also be the one task of a launcher."""
    texts = [clean(line) for line in lines]
    dialect = sniff(texts, None) if has_labels else Dialect()
    read = [dialect.read(text) for text in texts]
    ranks = {speaker.rank for speaker, _ in read}
    if None in ranks or sum(1 for (_, rest), text in zip(read, texts, strict=True) if rest != text) < len(rests):
        return False
    return has_labels or not _several_speak(rests)


def _several_speak(rests: Sequence[bytes]) -> bool:
    """More than one rank speaks behind the prefix, or a launcher that has no rank."""
    texts = [clean(rest) for rest in rests]
    dialect = sniff(texts, None)
    speakers = {dialect.read(text)[0].rank for text in texts}
    return len(speakers - {None}) > 1


def _unwrap(found: _Prefix) -> Unwrap:
    pattern, labels, _ = found

    def unwrap(line: bytes) -> bytes:
        match = pattern.match(line[: 2 * _SCOPE])
        if match is None:
            return line
        rest = line[match.end() :]
        if labels:
            rest = _label(match, labels) + rest
        if (date := _DATE.search(match[0])) is not None:
            return b"%sT%s.%sZ %s" % (date["day"], date["time"], date["part"] or b"0", rest)
        return rest

    return unwrap


def _label(match: re.Match[bytes], labels: Sequence[int]) -> bytes:
    """Who speaks, as `dialects` reads it."""
    for group in labels:
        if _RANK_BEFORE.search(match.string[: match.start(group)]) and match[group].strip().isdigit():
            return b"[rank%s]: " % match[group].strip()
    name = match[labels[0]].strip()
    if name.isdigit():
        return b"%s: " % name
    if _ROLE.match(name):
        return b"%s | " % name
    return b"%s: " % (name if name[:1].isalpha() else b"host-" + name)
