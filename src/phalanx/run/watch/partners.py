"""Tells with whom a rank that sends or receives wants to meet, and finds the circles of ranks that wait for one another.

Gloo's flight recorder does not know point-to-point calls: the partner is read from the arguments in the rank's stack, and for
`request.wait()` from the line that made the request.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from phalanx.blame.strategies.wait_cycle import circles as all_circles
from phalanx.model import Frame
from phalanx.model.ranks import name_ranks
from phalanx.run.watch.arguments import argument_at, chosen_aside
from phalanx.run.watch.loops import changing_names, passes_of
from phalanx.sources.rank_conditions import Variables, name_of, value_of
from phalanx.sources.user_code import around, parse_source, scope_of

_C10D = "torch/distributed/distributed_c10d.py"
SENDS = ("send", "send_object_list", "isend")
_RECEIVES = ("recv", "recv_object_list", "irecv")
_ASYNCHRONOUS = ("isend", "irecv", "batch_isend_irecv")
_PIPELINES = "_wait_batch_p2p"  # where PyTorch's pipeline schedules wait for both directions
_MOST_IN_A_SENTENCE = 6


@dataclass(frozen=True, slots=True)
class Partner:
    """The other side of a send or a receive."""

    rank: int
    sends: bool  # whether the rank sends to it; else it receives from it
    tag: int = 0
    aside: str = ""  # the condition on the rank that chose the tag or the other side

    @property
    def doing(self) -> str:
        """What the rank does with it: `receives from rank 1`."""
        tag = f" (tag {self.tag})" if self.tag else ""
        return f"{'sends to' if self.sends else 'receives from'} rank {self.rank}{tag}"


def is_point_to_point(call: str) -> bool:
    """Whether a call is one half of a pair, which other ranks need not make."""
    return call in (*SENDS, *_RECEIVES, *_ASYNCHRONOUS, _PIPELINES)


def _with_aside(
    partner: Partner, frames: Sequence[Frame], values: Sequence[Mapping[str, str]], rank: int, size: int
) -> Partner:
    """With the condition on the rank that chose its tag or the other side, if the user's line shows one.

    Whom a rank meets depends on the rank by nature; not so what it meets in one pass of a loop only.
    """
    mine = [(frame, told) for frame, told in zip(frames, values, strict=True) if frame.is_user_code]
    call = next((one.function for one in frames if one.path.endswith(_C10D) and is_point_to_point(one.function)), "")
    if not mine or not call:
        return partner
    frame, told = mine[-1]
    known = Variables.of(told, rank, size)
    counters = {name for _, _, name, _ in passes_of((frame,), (told,))}
    for names, place in ((("tag",), 3), (("dst", "src"), 1)):
        given = argument_at(frame.file, frame.line, call, names, place)
        aside = chosen_aside(frame.file, *given, known) if given else ""
        if aside and (names == ("tag",) or counters & set(re.findall(r"\w+", aside))):
            return replace(partner, aside=aside)
    return partner


def partner_of(frames: Sequence[Frame], values: Sequence[Mapping[str, str]], rank: int, size: int) -> Partner | None:
    """Whom the call in which a stack stands names; `values` are the variables of each frame, as text."""
    for frame, told in zip(reversed(frames), reversed(values), strict=True):
        if frame.is_user_code:
            return _of_request(frame, told, rank, size)
        if not frame.file.replace("\\", "/").endswith(_C10D) or not is_point_to_point(frame.function):
            continue
        sends = frame.function in SENDS
        other = told.get("dst" if sends else "src", "")
        if _is_number(other):
            tag = told.get("tag", "")
            found = Partner(int(other), sends, int(tag) if _is_number(tag) else 0)
            return _with_aside(found, frames, values, rank, size)
    return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 8


def request_at(file: str, line: int) -> ast.Call | None:
    """The call of isend, irecv or batch_isend_irecv for whose end `request.wait()` in this line waits; None if it is another wait."""
    tree = parse_source(file)
    if tree is None:
        return None
    scope = scope_of(tree, line)
    waited = [
        node.func.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "wait"
        if node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    for value in waited:
        made = value if isinstance(value, ast.Call) else _made(scope, value, line)
        if made is not None and name_of(made) in _ASYNCHRONOUS:
            return made
    return None


def has_other_half(frame: Frame, sends: bool) -> bool:
    """Whether the script's other side of a send or receive stands in another branch of a condition around it."""
    tree = parse_source(frame.file)
    if tree is None:
        return False
    halves = _RECEIVES if sends else SENDS
    for node in ast.walk(scope_of(tree, frame.line)):
        if not isinstance(node, ast.If) or not node.lineno < frame.line <= (node.end_lineno or 0) or not node.orelse:
            continue
        is_below = frame.line <= (node.body[-1].end_lineno or 0)
        for part in node.orelse if is_below else node.body:
            if any(isinstance(one, ast.Call) and name_of(one) in halves for one in ast.walk(part)):
                return True
    return False


def left_out_half(frame: Frame, sends: bool) -> str:
    """`if norm > 0.3` at train.py:38: the condition on what the rank computed under which the other half of its exchanges stands, before this
    one in the same pass of a loop; else empty. A rank that waits here may have passed it by."""
    tree = parse_source(frame.file)
    loops = list(around(frame.file, frame.line, ast.For, ast.While))
    if tree is None or not loops:
        return ""
    halves = _RECEIVES if sends else SENDS
    changing = changing_names(scope_of(tree, frame.line))
    for node in ast.walk(loops[-1]):
        if not isinstance(node, ast.If) or (node.end_lineno or 0) >= frame.line or node.orelse:
            continue
        names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
        has_half = any(isinstance(one, ast.Call) and name_of(one) in halves for one in ast.walk(node))
        if has_half and names & changing:
            return f"`if {ast.unparse(node.test)}` at {Frame(frame.file, node.lineno, frame.function).place}"
    return ""


def circles(partners: Mapping[int, Partner]) -> list[tuple[int, ...]]:
    """Ranks each of which waits for the next, the last for the first. A send and the receive that takes it are none."""
    found = all_circles({rank: partner.rank for rank, partner in partners.items()})
    return [circle for circle in found if not _is_under_way(circle, partners)]


def describe_circle(circle: Sequence[int], partners: Mapping[int, Partner]) -> str:
    """`ranks 0, 1 wait for one another in a circle: rank 0 receives from rank 1, which receives from rank 0`."""
    shown = list(circle[:_MOST_IN_A_SENTENCE])
    words = ", which ".join(partners[rank].doing for rank in shown)
    left = len(circle) - len(shown)
    more = f", and so on through {left} more" if left else ""
    return f"{name_ranks(circle)} wait for one another in a circle: rank {circle[0]} {words}{more}"


def _is_under_way(circle: tuple[int, ...], partners: Mapping[int, Partner]) -> bool:
    """Two of which one sends what the other receives: that is held up by something else."""
    if len(circle) != 2:
        return False
    one, other = (partners[rank] for rank in circle)
    return one.sends != other.sends and one.tag == other.tag


def _made(scope: ast.AST, value: ast.expr, line: int) -> ast.Call | None:
    """The call that a variable was last given before the line; for the variable of a loop, that its list was given."""
    if not isinstance(value, ast.Name):
        return None
    for node in ast.walk(scope):
        if not isinstance(node, ast.For | ast.comprehension) or ast.unparse(node.target) != value.id:
            continue
        if isinstance(node.iter, ast.Call):
            return node.iter
        return _made(scope, node.iter, line) if ast.unparse(node.iter) != value.id else None
    given = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and node.lineno <= line and isinstance(node.value, ast.Call)
        if any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
    ]
    last = max(given, key=lambda node: node.lineno, default=None)
    return last.value if last is not None and isinstance(last.value, ast.Call) else None


def _of_request(frame: Frame, told: Mapping[str, str], rank: int, size: int) -> Partner | None:
    made = request_at(frame.file, frame.line)
    if made is None or name_of(made) not in ("isend", "irecv"):
        return None
    sends = name_of(made) == "isend"
    given = {word.arg: word.value for word in made.keywords}
    other = given.get("dst" if sends else "src", made.args[1] if len(made.args) > 1 else None)
    known = Variables.of(told, rank, size)
    number = value_of(other, known)
    tag = value_of(given.get("tag"), known)
    return None if number is None or not 0 <= number < size else Partner(number, sends, tag or 0)
