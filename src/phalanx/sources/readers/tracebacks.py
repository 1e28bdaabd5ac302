"""Python tracebacks: chained, grouped, from worker processes, and interrupted ones (which are stacks).

Traceback (most recent call last):
  File "/home/user/train.py", line 88, in <module>
    loss.backward()
RuntimeError: Connection closed by peer [10.0.0.5]:4242
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Event, EventKind, Frame
from phalanx.model.lazy import lazy
from phalanx.sources.window import Window

TRIGGERS = ("raceback (most recent call last)",)  # the first letter is often lost where somebody copies it
TRUNCATED = "(truncated traceback)"  # in the exception's place, where its end is missing

# An arrow stands at the frame that caught the exception, where Loguru prints it.
FRAME = lazy(r'^\s*(?:> )?File ["“](?P<file>[^"”]+)["”], line (?P<line>\d+)(?:, in(?: (?P<function>.+))?)?$')
FINAL = lazy(r"^(?P<type>[A-Za-z_][\w.]*(?:\[[\w.]+\])?)(?::\s?(?P<message>.*))?$")
_QUOTED = lazy(r"^\s*>\s?")  # a traceback quoted in a report or a mail
_INDENTED = lazy(r"^\s+")  # within the output of pip or CMake, or set as code in a report
_MARGIN = lazy(r"^\s*[|+][-+ |\d]*(?:\| ?)?")
_CHAIN = lazy(r"^(?:During handling of the above exception|The above exception was the direct cause)")
_NEXT_RECORD = lazy(
    r"^\s*(?:\[?\d{4}[-/]\d\d[-/]\d\d|\[?[IWEF]\d{3,4} |\d\d:\d\d:\d\d|Traceback|Original Traceback|Process \S+:$|srun: |slurmstepd: |"
    r"={6,}|-{6,}|\*{6,}|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)[:\s]|Exception in thread|Exception ignored|\S+:\d+:\d+ \[\d+\] |"
    r"[Ee]poch\b|[Ss]tep\b|Terminated$|Killed$|Aborted|terminate called |\[[IWEF] \w+\.cpp|Process \d+ exit|```|\[rank|\(\w+ pid=)"
)
_INTERRUPTIONS = (
    "KeyboardInterrupt",
    "SignalException",
    "torch.distributed.elastic.multiprocessing.api.SignalException",
)
IGNORED = lazy(
    r"^Exception ignored (?:in|while|on)\b"
)  # what a destructor or a callback raised, with nobody to take it
_SPAWNED = lazy(r"^-- Process (\d+) terminated with the following error")
_RAY_TASK = lazy(r"ray::\S+ \(pid=(\d+), ip=")  # in whose process a task raised
_LONGEST_MESSAGE = 40
# TensorFlow tells where the graph's node was made before it tells what went wrong there.
_OF_A_GRAPH = "Graph execution error"
_MADE_AT = ("Detected at node", "Node: ", "<stack traces unavailable>", "defined at (most recent call last)")
_IN_USER_CODE = (
    "in user code:"  # what fails while a graph is made: the frames of the script follow, then the exception once more
)
_GENERATED = "__autograph_generated_file"  # what TensorFlow compiles in place of the script's function
_LONGEST_LISTING = 400


def read(window: Window) -> Iterator[Event]:
    """One event for the traceback that begins here."""
    parsed = _parse(_Lines(_without_margin(window)))
    if parsed is None:
        return
    frames, kind_of, first, message, line = parsed
    before = list(window.preceding(2))
    spawned = next((match for text in before if (match := _SPAWNED.match(text))), None)
    final = f"{kind_of}: {message}" if message else kind_of
    is_stack = kind_of.endswith(_INTERRUPTIONS)
    yield window.event(
        EventKind.STACK if is_stack else EventKind.EXCEPTION,
        "traceback",
        text=final,
        line=line,
        rank=int(spawned[1]) if spawned else None,
        frames=frames,
        data={
            "type": kind_of,
            "headline": f"{kind_of}: {first}",
            "starts": window.number,
            "is_nested": window.text.lstrip().startswith("Original"),
            "is_chained": any(_CHAIN.match(text.strip()) for text in before),
            "is_ignored": next((IGNORED.match(text) is not None for text in before), False),
            **({"pid": pid} if (pid := _ray_process(window, frames, line)) is not None else {}),
        },
    )


def _ray_process(window: Window, frames: tuple[Frame, ...], last: int) -> int | None:
    """The process of the innermost Ray task that a driver's traceback passes through."""
    if not any("/ray/" in frame.file for frame in frames):
        return None
    found = [match for number, text in window.following() if number < last and (match := _RAY_TASK.search(text))]
    return int(found[-1][1]) if found else None


def _without_margin(window: Window) -> Iterator[tuple[int, str]]:
    """The following lines, without what stands before each line of the traceback."""
    text = window.text
    if _QUOTED.match(text):
        return ((number, _QUOTED.sub("", line)) for number, line in window.following())
    if indent := _INDENTED.match(text):
        return ((number, line.removeprefix(indent[0])) for number, line in window.following())
    return window.following()


class _Lines:
    """Lines that are only read as far as somebody looks: most tracebacks are short, some are very long."""

    def __init__(self, source: Iterator[tuple[int, str]]) -> None:
        self._source = source
        self._read: list[tuple[int, str]] = []

    def at(self, index: int) -> tuple[int, str] | None:
        """The line at this place; None behind the last."""
        while len(self._read) <= index:
            following = next(self._source, None)
            if following is None:
                return None
            self._read.append(following)
        return self._read[index]

    @property
    def last_number(self) -> int:
        """The number of the last line that was looked at."""
        return self._read[-1][0] if self._read else 0


def _parse(lines: _Lines) -> tuple[tuple[Frame, ...], str, str, str, int] | None:
    """Frames, exception type, first line of the message, all of it, and the line at which the exception is named."""
    frames: list[Frame] = []
    index, in_group = 0, False
    while (line := lines.at(index)) is not None:
        number, text = line
        if "|" in text and _MARGIN.match(text):
            in_group = True
        body = _MARGIN.sub("", text) if in_group else text
        index += 1
        if match := FRAME.match(body):
            source = _source_line(lines.at(index), in_group, is_flat=body.startswith("File"))
            index += bool(source)
            frames.append(Frame(match["file"], int(match["line"]), match["function"] or "<module>", source))
            continue
        if not body.strip() or body[:1] in " \t":  # carets, repeated-line notes, source of several lines
            continue
        final = FINAL.match(body.strip("*`"))  # people set the last line in bold
        if final is None or (not frames and not looks_like_exception(final["type"])):
            if not frames:
                return None
            continue
        first = (final["message"] or "").strip()
        if first.startswith((_OF_A_GRAPH, _IN_USER_CODE)):
            frames = _with_own(frames, _listed(lines, index))
        if first.startswith(_IN_USER_CODE) and (inner := _inner_message(lines, index, final["type"])):
            return tuple(frames), final["type"], inner, inner, number
        return tuple(frames), final["type"], first, _message(lines, index, first, in_group), number
    if frames:  # cut off in the middle: still tells where it was
        return tuple(frames), TRUNCATED, "", "", lines.last_number
    return None


def _source_line(line: tuple[int, str] | None, in_group: bool, *, is_flat: bool) -> str:
    """The line of code below a frame. Where a forum took the indentation away, whatever names no exception."""
    if line is None:
        return ""
    body = _MARGIN.sub("", line[1]) if in_group else line[1]
    if FRAME.match(body):
        return ""
    final = FINAL.match(body.strip("*`")) if is_flat else None
    is_code = is_flat and bool(body) and (final is None or not looks_like_exception(final["type"]))
    return body.strip() if body[:1] in (" ", "\t") or is_code else ""


def looks_like_exception(name: str) -> bool:
    """True for what classes of exceptions are called; NCCL's results (`ncclRemoteError: …`) are a part of a message."""
    return not name.startswith("nccl") and name.endswith(
        ("Error", "Exception", "Interrupt", "Exit", "Iteration", "Warning", "Group")
    )


def _message(lines: _Lines, index: int, first: str, in_group: bool) -> str:
    """The rest of a message of several lines, up to what is plainly another record."""
    parts, blank = [first], False
    if first.startswith(_OF_A_GRAPH):
        index = _below_listing(lines, index)
    for place in range(index, index + _LONGEST_MESSAGE):
        line = lines.at(place)
        if line is None:
            break
        body = _MARGIN.sub("", line[1]) if in_group else line[1]
        if _NEXT_RECORD.match(body) or _CHAIN.match(body) or FRAME.match(body):
            break
        if body.startswith("nccl") and "NCCL" not in first:
            break  # of another rank's message, between whose lines this traceback was written
        if not body.strip():
            if blank:
                break
            blank = True
            continue
        if (
            blank
            and not body[:1].isspace()
            and not body.lstrip().startswith(("frame #", "Parameter", "Exception raised"))
        ):
            break
        parts.append(body.strip())
    return " ".join(part for part in parts if part)


def _listed(lines: _Lines, index: int) -> list[Frame]:
    """The frames within a message of TensorFlow's: where a node was made, or where a graph was being made."""
    found: list[Frame] = []
    for place in range(index, index + _LONGEST_LISTING):
        line = lines.at(place)
        if line is None or _NEXT_RECORD.match(line[1]):
            break
        if match := FRAME.match(line[1]):
            source = _source_line(lines.at(place + 1), in_group=False, is_flat=False)
            function = (match["function"] or "<module>").rstrip(" *")  # stars tell what was converted
            found.append(Frame(match["file"], int(match["line"]), function, source))
        elif line[1].strip() and not line[1][:1].isspace() and not line[1].startswith(_MADE_AT):
            break
    return found


def _with_own(frames: list[Frame], listed: list[Frame]) -> list[Frame]:
    """The script's own lines within the graph, below the line that called it and in place of the generated ones."""
    kept = [frame for frame in frames if _GENERATED not in frame.file]
    own = [frame for frame in listed if frame.is_user_code and frame not in kept]
    last = max((place for place, frame in enumerate(kept) if frame.is_user_code), default=-1) + 1
    return [*kept[:last], *own, *kept[last:]]


def _inner_message(lines: _Lines, index: int, kind: str) -> str:
    """What the exception says, below the frames that come first."""
    for place in range(index, index + _LONGEST_LISTING):
        line = lines.at(place)
        if line is None or (line[1].strip() and not line[1][:1].isspace()):
            break
        if line[1].strip().startswith(f"{kind}: "):
            return line[1].strip().removeprefix(f"{kind}: ")
    return ""


def _below_listing(lines: _Lines, index: int) -> int:
    """The place of the first line below the frames at which a node was made."""
    for place in range(index, index + _LONGEST_LISTING):
        line = lines.at(place)
        if line is None or _NEXT_RECORD.match(line[1]):
            break
        body = line[1]
        if body.strip() and not body[:1].isspace() and not body.startswith(_MADE_AT):
            return place
    return index
