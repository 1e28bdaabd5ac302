"""A rank that had fewer batches than the others: it left the loop over its data while they were still in it.

    for x, y in loader:          # ranks 0, 2: step 18
        loss.backward()
    dist.all_reduce(total)       # rank 1, which has 17 batches; or its process has ended well

Gloo and NCCL then wait, mix up the two calls, or break the connection. The lines where the ranks stood show it in each case.
"""

from __future__ import annotations

import ast
import re
import signal
from itertools import pairwise
from typing import NamedTuple

from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.history import History
from phalanx.knowledge.rule import Claims
from phalanx.model import Frame, Stage
from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact
from phalanx.sources.rank_conditions import condition_at
from phalanx.sources.readers.exits import CLOSING
from phalanx.sources.shapes import shape_of
from phalanx.sources.user_code import data_loop, leaves_early, parse_source

# A line that waits for other ranks.
MEETS = re.compile(
    r"barrier|all_?reduce|all_?gather|gather|scatter|broadcast|reduce|all_to_all|backward\(|state_dict|\.step\(|model\(|net\(|wait\("
)
# What is called aside of the loop on purpose: a rank that stands there need not have left it for good.
_ASIDE = re.compile(
    r"sav|checkpoint|ckpt|eval|valid|test|log|report|metric|export|settings|config|restore|resume", re.I
)
_TRAINS = re.compile(r"backward\(|\.step\(|model\(|net\(")


class _Loop(NamedTuple):
    """A loop over data that a rank has left, and where a pass through it can be skipped; both are places in the script."""

    loop: str | None = None
    skip: str | None = None


def ran_out_of_batches(claim: Claim, history: History) -> Fact | None:
    """The fact, if the accused of a claim about ranks that failed to meet had left the loop that others are in."""
    others = history.world.all_ranks - claim.culprits
    if not claim.is_communication or not claim.culprits or not others or claim.stage not in (None, Stage.TRAIN):
        return None
    theirs = next((history.stacks[rank] for rank in sorted(others) if rank in history.stacks), ())
    ended = ended_well(claim.culprits, others, history)
    if ended:
        found = _loop_around(theirs)
        if found is None and not _ran_fewer_steps(claim.culprits, others, history):
            return None
    else:
        own = {history.stacks.get(rank, ()) for rank in claim.culprits}
        found = _loop_left(own.pop(), theirs, is_first=0 in claim.culprits) if len(own) == 1 and theirs else None
        if found is None or (not found.loop and claim.depth is Claims.CAUSE):
            return None  # without the source, calls that do not match may as well be in another order
    fields = {**(found._asdict() if found else {}), **_last_step(claim.culprits, history)}
    return make_fact("deviation.ran-out-of-batches", fields, ranks=tuple(sorted(claim.culprits)), source="source")


def ended_well(accused: frozenset[int], others: frozenset[int], history: History) -> bool:
    """All accused had ended with success while the others still called."""
    left = {rank for rank, code in history.exit_codes.items() if code == 0}
    left |= {rank.number for rank in history.world.ranks if rank.finished and rank.exit_code in (None, 0)}
    told = history.exit_codes.keys()
    # The agent closes whoever still runs: were there more of these than ranks that ended so, the accused ran, too.
    ended = sum(code == -signal.SIGTERM for code in history.exit_codes.values())
    closed = sum(event.source == CLOSING for event in history.seen.events) > ended
    is_listed = len(others) > 1 and others <= told and not accused & told
    if history.world.launcher == "torchrun" and is_listed and not closed:
        left |= accused  # its summary names whoever failed, and it had to end nobody
    return accused <= left and not others & left


def _ran_fewer_steps(accused: frozenset[int], others: frozenset[int], history: History) -> bool:
    steps = {rank.number: rank.last_step for rank in history.world.ranks if rank.last_step is not None}
    own = [steps[rank] for rank in accused if rank in steps]
    theirs = [steps[rank] for rank in others if rank in steps]
    return bool(own and theirs) and max(own) < min(theirs)


def _loop_at(frame: Frame, loop: ast.For) -> _Loop:
    skips = (node.lineno for node in ast.walk(loop) if isinstance(node, ast.Continue))
    skip = min(skips, default=None)
    return _Loop(
        Frame(frame.file, loop.lineno, frame.function).place,
        Frame(frame.file, skip, frame.function).place if skip is not None else None,
    )


def _loop_around(frames: tuple[Frame, ...]) -> _Loop | None:
    """The loop over data that a stack stands in, if whoever ended well can have left its function only behind that loop."""
    for frame in reversed(frames):
        if condition_at(frame.file, frame.line) is not None or leaves_early(frame):
            return None
        if (loop := data_loop(frame)) is not None:
            return _loop_at(frame, loop)
    return None


def _loop_left(mine: tuple[Frame, ...], theirs: tuple[Frame, ...], *, is_first: bool) -> _Loop | None:
    """The loop that they stand in and I have passed, in the function where the two stacks part; without a place where the source is not at hand.

    Rank 0 is often led aside by a condition, and nothing but the source could tell.
    """
    # compared by place: faulthandler prints no source lines
    pairs = enumerate(zip(mine, theirs, strict=False))
    apart = next((place for place, (a, b) in pairs if (a.file, a.line) != (b.file, b.line)), None)
    if apart is None:
        return None
    own, other = mine[apart], theirs[apart]
    if (own.file, own.function) != (other.file, other.function):
        return None
    if own.line <= other.line or condition_at(own.file, own.line) is not None:
        return None
    if parse_source(own.file) is not None:
        loop = data_loop(other, left_at=own.line)
        if loop is None:  # or in a function that they are in and I have come back from
            return _loop_around(theirs[apart + 1 :])
        return _loop_at(other, loop)
    is_aside = is_first or not MEETS.search(mine[-1].source) or _ASIDE.search(f"{mine[-1].function} {own.source}")
    return _Loop() if _TRAINS.search(other.source) and not is_aside else None


def _last_step(accused: frozenset[int], history: History) -> dict[str, int]:
    """The last step of a single rank: the number of it where every step is reported, else of the last report."""
    if len(accused) != 1:
        return {}
    (rank,) = accused
    entries = [file.ranks[rank] for file in history.seen.files if rank in file.ranks]
    told = [entry for entry in entries if entry.position is not None and entry.position[1] >= 0]
    if len(told) != 1 or told[0].position is None:
        return {}
    positions = [shape_of(text).position_in(text) for text in told[0].recent_reports]
    every = len(positions) > 1 and all(b[1] - a[1] == 1 for a, b in pairwise(positions))
    return {"step" if every else "reported": told[0].position[1]}
