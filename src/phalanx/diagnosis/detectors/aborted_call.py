"""A rank that Gloo aborted over a message's size leaves no stack; the user's source tells which collective it alone was led to.

[rank1] … in train.py:19, all_gather, Connection reset by peer
terminate called … op.preamble.length <= op.nbytes. 90 vs 48      (rank 0, SIGABRT)
train.py:15    if rank == 0: state = get_model_state_dict(net)
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from pathlib import PurePath

from phalanx.diagnosis.detectors.called_by_some import GATHERS
from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event, EventKind
from phalanx.model.facts import make_fact
from phalanx.sources.facts import fact_event
from phalanx.sources.rank_conditions import Condition, conditions_at, name_of
from phalanx.sources.user_code import parse_source

_MISMATCH = "op.preamble.length <= op.nbytes"
_COLLECTIVES = re.compile(
    r"all_reduce|all_gather(_into_tensor|_object)?|reduce(_scatter(_tensor)?)?|broadcast(_object_list)?|gather(_object)?|scatter"
    r"|all_to_all(_single)?|(monitored_)?barrier|gather_for_metrics|wait_for_everyone|save_state"
)


def detect(job: Job) -> Iterator[Event]:
    """One fact, where one rank aborted without a stack and one call alone, under a condition that it alone passes, explains it."""
    if not any(_MISMATCH in event.text for event in job.events):
        return
    exits = {event.rank: event for event in job.events if event.kind is EventKind.EXIT and event.rank is not None}
    stacks = [event for event in job.events if event.rank is not None and event.user_frame is not None]
    others = {event.rank for event in stacks if event.rank is not None}
    aborted = [rank for rank, event in exits.items() if event.data["code"] == -signal.SIGABRT and rank not in others]
    if len(aborted) != 1 or len(others) < 2:
        return
    files = {frame.file for event in stacks for frame in event.frames if frame.is_user_code}
    calls = [found for file in sorted(files) for found in _calls_of(file, aborted[0], others)]
    if len(calls) != 1:
        return
    file, call, condition = calls[0]
    fields = {
        "verb": "calls",
        "call": name_of(call),
        "place": f"{PurePath(file).name}:{call.lineno}",
        "condition": condition.text,
        "gathers": name_of(call) if name_of(call) in GATHERS else "",
        "cause": "rank-conditional-collective",
        "ended": "crash",
    }
    ended = exits[aborted[0]]
    fact = make_fact("source.called-by-some", fields, ranks=(aborted[0],), source="source")
    yield fact_event(fact, ended.file, ended.line, aborted[0])


def _calls_of(file: str, rank: int, others: set[int]) -> Iterator[tuple[str, ast.Call, Condition]]:
    """The collectives in a file that a condition leads this rank to and keeps all others from."""
    tree = parse_source(file)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not (name_of(node) in GATHERS or _COLLECTIVES.fullmatch(name_of(node))):
            continue
        if any(keyword.arg in ("group", "process_group") for keyword in node.keywords):
            continue  # the others need not be members
        for condition in conditions_at(file, node.lineno):
            if condition.holds and condition.lets_in(rank) is not False and _keeps_out(condition, others):
                yield file, node, condition


def _keeps_out(condition: Condition, ranks: set[int]) -> bool:
    return condition.is_about_ranks and condition.singles_out and all(condition.lets_in(one) is False for one in ranks)
