"""Crashes and time-outs after a collective that only some ranks called: the condition on the rank in the user's source says which.

    if rank == 0:
        evaluate(model)     # the wrapped model communicates; meanwhile the other ranks train on

On a backend that crashes instead of hanging (sizes differ, a connection breaks), stacks or tracebacks show where each rank was.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from phalanx.blame.quorum import is_minority
from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event, EventKind, Frame
from phalanx.model.facts import make_fact
from phalanx.sources.facts import fact_event
from phalanx.sources.rank_conditions import condition_above, singles_out
from phalanx.sources.user_code import parse_source, source_line

# Library code that returns only when other ranks have come.
_MEETS = re.compile(
    r"torch/distributed/|torch/nn/parallel/distributed|horovod/|_engine_run_backward|deepspeed/|megatron/"
)
_TIMED_OUT = re.compile(r"timed? ?out", re.I)
_PAIRED = frozenset(
    ("send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list", "P2POp")
)
_OF_GROUPS = frozenset(("group", "process_group", "process_set"))
_WRAPPERS = frozenset(("wrapper", "inner", "decorate_context", "_fn"))
GATHERS = frozenset(
    (
        "get_model_state_dict",
        "get_optimizer_state_dict",
        "get_state_dict",
        "state_dict",
        "full_tensor",
        "save_checkpoint",
    )
)  # what a sharded model's state is gathered from all ranks by
_WRAPPED = "the wrapped model"
_MODEL_CALLS = frozenset(("_wrapped_call_impl", "_call_impl", "__call__"))


def detect(job: Job) -> Iterator[Event]:
    """A fact for each of the ranks under a condition on the rank, while no other rank is under any."""
    ends = _ends(job)
    if len(ends) < 2 or not all(_meets(event.frames) for event in ends.values()):
        return  # a rank that failed by itself needs no other explanation
    seen_by_watch = _conditions_of_watch(job)
    conditions = {rank: _condition(event, seen_by_watch.get(rank, "")) for rank, event in ends.items()}
    inside = {rank: found for rank, found in conditions.items() if found}
    if not is_minority(inside, ends, directed=True) or len(set(inside.values())) != 1:
        return  # where most are under the condition, as under `if rank != 2`, those that are not left the call out
    alone = min(inside)
    event, condition = ends[alone], inside[alone]
    own = event.user_frame
    if own is None or condition.startswith("else of") or (call := _call(event)) is None:
        return
    if not singles_out(condition):
        return  # under `if not (rank == 1 and …)` those that are not there left the call out
    places = {frame.place for rank, other in ends.items() if rank not in inside and (frame := other.user_frame)}
    fields = {
        "verb": "calls" if len(inside) == 1 else "call",
        "call": call,
        "function": "" if own.function.startswith("<") else own.function,
        "place": own.place,
        "condition": condition,
        "others_at": places.pop() if len(places) == 1 else "",
        "plain": "`model.module`" if call == _WRAPPED else "",
        "gathers": call if call in GATHERS else "",
        "library": "accelerate" if call == _WRAPPED and _imports_accelerate(own.file) else "",
        "cause": "rank-conditional-collective",
        "ended": "timeout" if any(_TIMED_OUT.search(event.text) for event in ends.values()) else "crash",
    }
    for rank in sorted(inside):
        fact = make_fact("source.called-by-some", fields, ranks=(rank,), source="source")
        yield fact_event(fact, ends[rank].file, ends[rank].line, rank, ends[rank].frames)


def _imports_accelerate(file: str) -> bool:
    tree = parse_source(file)
    nodes = ast.walk(tree) if tree is not None else ()
    return any(
        isinstance(node, ast.Import | ast.ImportFrom) and "accelerate" in ast.unparse(node).split(".")[0]
        for node in nodes
    )


def _condition(event: Event, seen_by_watch: str) -> str:
    """The condition in the source, if the file is here and still holds the line that ran; else what the watch read there."""
    found = condition_above(event.frames)
    if found is None or (event.user_frame is not None and not _is_as_printed(event.user_frame)):
        return seen_by_watch
    return found[0]


def _conditions_of_watch(job: Job) -> dict[int, str]:
    """What `phalanx run` read in the source as a rank ended."""
    reasons = {event.rank: event.data.get("why") for event in job.events if event.kind is EventKind.EXIT}
    return {
        rank: str(why["condition"])
        for rank, why in reasons.items()
        if rank is not None and isinstance(why, dict) and why.get("condition")
    }


def _ends(job: Job) -> dict[int, Event]:
    """By rank the last stack with a line of the user's: of its exception, or printed as it aborted."""
    kinds = (EventKind.EXCEPTION, EventKind.STACK)
    return {
        event.rank: event
        for event in job.events
        if event.rank is not None and event.kind in kinds and event.user_frame is not None and not _ignored(event)
    }


def _ignored(event: Event) -> bool:
    return bool(event.data.get("is_ignored") or event.data.get("is_nested"))


def _meets(frames: tuple[Frame, ...]) -> bool:
    """Whether the user's innermost line had called something that waits for other ranks."""
    last = max(index for index, frame in enumerate(frames) if frame.is_user_code)
    return any(_MEETS.search(f"{frame.path} {frame.function}") for frame in frames[last + 1 :])


def _is_as_printed(frame: Frame) -> bool:
    """Whether the file still holds the line that ran."""
    return not frame.source or frame.source.strip() == source_line(frame.file, frame.line).strip()


def _call(event: Event) -> str | None:
    """What the user's line called; None where the others need not call it: one half of a pair, or a smaller group's."""
    last = max(index for index, frame in enumerate(event.frames) if frame.is_user_code)
    own, below = event.frames[last], event.frames[last + 1 :]
    try:
        calls = [node for node in ast.walk(ast.parse(source_line(own.file, own.line))) if isinstance(node, ast.Call)]
    except (SyntaxError, ValueError, RecursionError):
        calls = []
    names = {ast.unparse(node.func).rsplit(".", 1)[-1]: node for node in calls}
    reached = {frame.function for frame in below}
    if reached & _PAIRED or names.keys() & _PAIRED:
        return None
    if any(keyword.arg in _OF_GROUPS for node in calls for keyword in node.keywords):
        return None
    if below[0].function in _MODEL_CALLS:
        return _WRAPPED
    called = next((name for name in names if name in reached), None) or next(iter(names), None)
    return called or next((frame.function for frame in below if frame.function not in _WRAPPERS), None)
