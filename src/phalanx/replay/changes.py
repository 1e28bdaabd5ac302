"""What is not as it was when the recording was made: the user's files, versions, threads, the processor."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.model.foreign import read_object, read_text
from phalanx.replay.command import Command
from phalanx.replay.record import SOURCES
from phalanx.replay.recordings import Recording
from phalanx.sources.secrets import redact_source

# Where these are the same, the same numbers come out; PyTorch promises nothing across releases, platforms and devices.
_STACK = (
    "python",
    "machine",
    "cpu",
    "torch",
    "numpy",
    "tensorflow",
    "keras",
    "horovod",
    "instructions",
    "device",
    "torch threads",
)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is different now."""

    what: str
    was: str
    now: str
    text: str


def changes_between(recording: Recording, rank: int, replayed: Path, command: Command) -> list[Change]:
    """All that is known to be different; the user's own files first."""
    then, now = recording.ranks[rank], _meta(replayed)
    found = _sources(recording.bundle, then.get("sources", {}), now.get("sources", {}), command.sources)
    recorded = [str(word) for word in recording.manifest["command"]][2:]
    given = list(command.argv[2:])
    if recorded != given:
        found.append(
            Change(
                "arguments",
                " ".join(recorded),
                " ".join(given),
                f"the arguments: {' '.join(given)} was {' '.join(recorded)}",
            )
        )
    before, after = then.get("software", {}), now.get("software", {})
    for name in sorted(before.keys() | after.keys()):
        was, is_now = str(before.get(name, "not there")), str(after.get(name, "not there"))
        if was != is_now:
            found.append(Change(name, was, is_now, f"{name}: {is_now}, was {was}"))
    return found


def is_same_stack(then: dict[str, Any], replayed: Path) -> bool:
    """Whether equal bits can be expected."""
    before, after = then.get("software", {}), _meta(replayed).get("software", {})
    # Those of a recording are text, whatever they were: it may come from anybody.
    return all(str(before.get(name)) == str(after.get(name)) for name in _STACK)


def _meta(folder: Path) -> dict[str, Any]:
    try:
        return read_object(folder / "meta.json")
    except (OSError, ValueError):
        return {}


def _sources(bundle: Path, then: dict[str, str], now: dict[str, str], folder: Path) -> list[Change]:
    found = []
    for name in sorted(then.keys() & now.keys()):
        if then[name] != now[name]:
            where = _first_changed_line(bundle / SOURCES / name, folder / name)
            found.append(Change(name, then[name][:12], now[name][:12], f"{name} was changed{where}"))
    return found


def _first_changed_line(kept: Path, current: Path) -> str:
    try:
        before = read_text(kept).splitlines()
        after = redact_source(current.read_text(encoding="utf-8", errors="replace")).splitlines()
    except (OSError, ValueError):
        return ""
    for kind, low, high, begin, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        was = before[low].strip() if high > low else "nothing"
        is_now = after[begin].strip() if end > begin else "nothing"
        return f" at line {begin + 1}: `{is_now[:80]}`, was `{was[:80]}`"
    return ""
