"""Looks several times at the main threads of ranks: whether they wait, turn in a circle, or get somewhere."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Mapping, Sequence

from phalanx.model import Frame
from phalanx.run.watch.partners import is_point_to_point
from phalanx.run.watch.rank_position import Doing, doing_of
from phalanx.run.watch.stacks import Thread, take_stacks
from phalanx.sources.user_code import parse_source, scope_of

_LOOKS, _BETWEEN_S = 6, 0.5
_FEW_LINES = 3
_FEWEST_LOOKS = 4
# What does nothing but ask: a loop of these alone waits for somebody else.
_ASKING = (
    ast.While | ast.If | ast.Pass | ast.Break | ast.Continue | ast.Expr | ast.Name | ast.Attribute | ast.Subscript
    | ast.Constant | ast.BoolOp | ast.UnaryOp | ast.Compare | ast.expr_context | ast.boolop | ast.unaryop | ast.cmpop
)  # fmt: skip
# Questions of the standard library, by function and file.
_QUESTION = re.compile(r"(?:\w+\.)?(?:exists|lexists|isfile|isdir|is_file|is_dir|stat)$")
_ASKED = re.compile(
    r"(?:^<frozen (?:genericpath|posixpath|os)>|(?:^|/)(?:genericpath|posixpath|pathlib|pathlib/\w+)\.py)$"
)


def looks_at(pids: Sequence[int], *, values: bool = False) -> dict[int, list[Thread]]:
    """The main threads, several times within some seconds; a look that failed is left out. With `values` of their variables,
    for which a process must be paused for some milliseconds."""
    seen: dict[int, list[Thread]] = {pid: [] for pid in pids}
    for number in range(_LOOKS):
        if number:
            time.sleep(_BETWEEN_S)
        taken = take_stacks(pids, pause=values, values=values)
        if values:  # without variables, where they cannot be had
            taken |= take_stacks([pid for pid, stacks in taken.items() if stacks.error], pause=False)
        for pid, stacks in taken.items():
            if stacks.main is not None and stacks.main.frames:
                seen[pid].append(stacks.main)
    return seen


def waits(looks: Sequence[Thread], has_entered: bool | None = None) -> bool:
    """Whether a rank stands in a collective whenever it is looked at, called from the same line. Senders and receivers do so
    in a pipeline too."""
    calls = {doing_of(look.frames, has_entered) for look in looks}
    places = {tuple(frame for frame in look.frames if frame.is_user_code) for look in looks}
    if len(looks) < _FEWEST_LOOKS or len(calls) != 1 or len(places) != 1:
        return False
    ((doing, call),) = calls
    return doing is Doing.COLLECTIVE and not is_point_to_point(call)


def spins(
    seen: Mapping[int, Sequence[Thread]],
    held: frozenset[int] = frozenset(),
    parents: frozenset[int] = frozenset(),
    *,
    is_long: bool = False,
) -> bool:
    """Whether every one of these processes computes and gets nowhere.

    It turns round in a few lines of the user's own code without changing a variable. Only time can tell where variables change or
    are not known, as in a count of words; where it never leaves one line, as in a call of native code, unless its loop calls and assigns
    nothing; and for those of `held`, whose native code keeps the interpreter's lock, as a large pickle does. Who asks for a file
    again and again may wait for what its own child makes: `parents` have such. An evaluation is seen at many places, and deep
    inside the framework.
    """
    for pid, looks in seen.items():
        places = _places(looks)
        turns = stays_in_few_lines(looks)
        asks = all(_only_asks(file, line) for file, line in places) or any(
            not look.frames[-1].is_user_code for look in looks
        )
        if pid in held:
            if not is_long or len({look.frames for look in looks}) != 1:
                return False
        elif (
            not turns
            or (asks and pid in parents)
            or (not is_long and ((len(places) == 1 and not asks) or changes(looks)))
        ):
            return False
    return bool(seen)


def stays_in_few_lines(looks: Sequence[Thread]) -> bool:
    """Whether a thread was in a few lines of the user's own code whenever it was looked at."""
    return 0 < len(_places(looks)) <= _FEW_LINES and all(_own_frame(look) is not None for look in looks)


def _places(looks: Sequence[Thread]) -> set[tuple[str, int]]:
    return {(frame.file, frame.line) for look in looks if (frame := _own_frame(look)) is not None}


def _only_asks(file: str, line: int) -> bool:
    """Whether the innermost loop around a line neither calls nor assigns anything: `while not self.ready: pass`."""
    tree = parse_source(file)
    inside = ast.walk(scope_of(tree, line)) if tree is not None else ()
    loops = [
        node
        for node in inside
        if isinstance(node, ast.While | ast.For) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    innermost = max(loops, key=lambda loop: loop.lineno, default=None)
    return innermost is not None and all(isinstance(node, _ASKING) for node in ast.walk(innermost))


def _own_frame(look: Thread) -> Frame | None:
    """Where a thread turns in the user's code: there itself, or in a question of the standard library's that takes microseconds, such as
    whether a file exists, so that who is found in it asks again and again. None if it is elsewhere."""
    for depth, frame in enumerate(reversed(look.frames)):
        if frame.is_user_code:
            return frame
        if depth >= _FEW_LINES or not (_QUESTION.match(frame.function) and _ASKED.search(frame.path)):
            return None
    return None


def changes(looks: Sequence[Thread]) -> bool:
    """Whether a variable of the user's functions differs between looks, or cannot be seen: py-spy shows none of a module's."""
    found: dict[tuple[int, str, str], str] = {}
    for look in looks:
        own = [
            (frame.function, told) for frame, told in zip(look.frames, look.values, strict=False) if frame.is_user_code
        ]
        if not own or own[-1][0] == "<module>":
            return True
        for depth, (function, told) in enumerate(own):
            for name, value in told.items():
                if found.setdefault((depth, function, name), value) != value:
                    return True
    return False
