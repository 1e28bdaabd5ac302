"""Who names another neighbour than the rest where all exchange round a ring: `(rank + 1) % world` is one hop for everybody.

The other side of each send and receive in the function in which all ranks stand is worked out for every rank, from its variables
and the call's own expression; who is another number of hops away is odd.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from phalanx.model import Frame
from phalanx.run.watch.dissent import Dissent, differs, each_side, odd_of, sides_of
from phalanx.run.watch.partners import is_point_to_point
from phalanx.run.watch.stacks import ProcessStacks
from phalanx.sources.rank_conditions import Variables, name_of, value_of
from phalanx.sources.user_code import parse_source, scope_of

_FEWEST = 3  # of two either may be right


def find_other_neighbour(stacks: Mapping[int, ProcessStacks], size: int) -> Dissent | None:
    """None where all ranks that stand in one function name the same neighbour, or none is worked out by a remainder."""
    stood = {rank: found for rank, one in stacks.items() if (found := _innermost(one)) is not None}
    functions = {(frame.file, frame.function) for frame, _ in stood.values()}
    if len(stood) < max(_FEWEST, size) or len(functions) != 1:
        return None
    first = next(iter(stood.values()))[0]
    tree = parse_source(first.file)
    for call in _exchanges(scope_of(tree, first.line)) if tree is not None else ():
        given = {word.arg: word.value for word in call.keywords}
        other = given.get("dst") or given.get("src") or (call.args[1] if len(call.args) > 1 else None)
        if other is None or not any(isinstance(one, ast.Mod) for one in ast.walk(other)):
            continue
        named = {rank: value_of(other, Variables.of(told, rank, size)) for rank, (_, told) in stood.items()}
        hops = {rank: str((value - rank) % size) for rank, value in named.items() if value is not None}
        if differs(hops) and (odd := odd_of(hops, size)) and len(odd) * 2 < size:
            place = Frame(first.file, call.lineno, first.function).place
            told = sides_of({rank: str(named[rank]) for rank in odd}, "names", "name")
            where = f"{name_of(call)} at {place}"
            sides = each_side({rank: str(named[rank]) for rank in odd}, "names", "name")
            text = f"different neighbours in {where}: {told}, another than the rest do"
            return Dissent(odd, text, "chosen", {"peers_in": where, "sides": sides})
    return None


def _exchanges(scope: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(scope) if isinstance(node, ast.Call) and is_point_to_point(name_of(node))]
    return sorted(calls, key=lambda node: node.lineno)


def _innermost(stacks: ProcessStacks) -> tuple[Frame, Mapping[str, str]] | None:
    """The user's innermost frame and its variables."""
    main = stacks.main
    if main is None or not main.values:
        return None
    mine = [pair for pair in zip(main.frames, main.values, strict=True) if pair[0].is_user_code]
    return mine[-1] if mine else None
