"""Reads what the watch inside wrote down of each rank's calls to TensorFlow or Horovod, and says how far each rank came in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from phalanx.model import Frame
from phalanx.model.bundle import rank_folder
from phalanx.run.watch.recorder import Call, GroupState
from phalanx.sources.text import NUMBER

_LARGEST = 16 << 20
_JOIN = "join"  # who is in Horovod's join takes part in whatever the others call

Passes = tuple[tuple[str, int], ...]  # loops around a call, the outermost first: name of the counter, its value


@dataclass(frozen=True, slots=True)
class Made:
    """One call: its number among those of its group, and where in the user's code it was made."""

    group: str
    number: int
    op: str
    name: str
    sizes: str
    frame: Frame | None
    passes: Passes
    done: bool

    @property
    def kind(self) -> tuple[str, int, str, str]:
        """The same for calls of one line, operation and name, numbers aside."""
        file, line = (self.frame.file, self.frame.line) if self.frame is not None else ("", 0)
        return file, line, self.op, NUMBER.sub("#", self.name)


@dataclass(frozen=True, slots=True)
class Journal:
    """The last calls of one rank, in order."""

    library: str
    by_name: bool  # ranks meet by the names of calls, in any order; else by their order
    entered: int
    calls: tuple[Made, ...]

    @property
    def waits_in(self) -> Made | None:
        """The first call that is not done."""
        return next((call for call in self.calls if not call.done), None)

    @property
    def last_passes(self) -> str:
        """`epoch 1, step 7`, of the last call that was made in a numbered loop; empty if none was."""
        passes = next((call.passes for call in reversed(self.calls) if call.passes), ())
        return ", ".join(f"{name} {value}" for name, value in passes)

    @property
    def has_joined(self) -> bool:
        """Whether the rank said that it has nothing left to give."""
        return any(call.op == _JOIN and not call.done for call in self.calls)


def calls_file(number: int) -> str:
    """The name of the file in a rank's folder, beside the stacks of the same number."""
    return f"calls-{number}.json"


def journals_in(attempt: Path, ranks: Iterable[int]) -> dict[int, Journal]:
    """The newest that each of these ranks left."""
    found: dict[int, Journal] = {}
    for rank in ranks:
        left = sorted(rank_folder(attempt, rank).glob("calls-*.json"), key=lambda path: path.stat().st_mtime)
        if left and (journal := read_journal(left[-1])) is not None:
            found[rank] = journal
    return found


def read_journal(path: Path) -> Journal | None:
    """None if there is none, or none that can be read."""
    try:
        if path.stat().st_size > _LARGEST:
            return None
        loaded = json.loads(path.read_bytes())
        calls = tuple(
            Made(
                str(group),
                int(number),
                str(op),
                str(name),
                f"{sizes} {kind}".strip(),
                Frame(str(place[0]), int(place[1]), str(place[2])) if place else None,
                tuple((str(one), int(value)) for one, value in passes),
                bool(done),
            )
            for group, number, op, name, sizes, kind, place, passes, done in loaded["calls"]
        )
        return Journal(str(loaded["library"]), bool(loaded["by_name"]), int(loaded["entered"]), calls)
    except (OSError, ValueError, TypeError, KeyError, IndexError):
        return None


def states_of(journals: Mapping[int, Journal]) -> dict[int, dict[str, GroupState]]:
    """How far each rank is in each group, as flight recorders tell it. By name, a rank that never made a call of that name is at 0 in it,
    and one that has joined holds nobody up."""
    found: dict[int, dict[str, GroupState]] = {rank: {} for rank in journals}
    waited_in = {call.group for one in journals.values() for call in one.calls if not call.done and call.op != _JOIN}
    for rank, one in journals.items():
        for group in sorted(waited_in):
            made = [call for call in one.calls if call.group == group]
            if one.has_joined and not any(not call.done for call in made):
                continue
            calls = {call.number: Call(group, call.number, call.op, call.sizes) for call in made}
            waits = next((calls[call.number] for call in made if not call.done), None)
            entered = calls[max(calls)] if calls else Call(group, 0, "", "")
            found[rank][group] = GroupState(entered, waits, calls)
    return found
