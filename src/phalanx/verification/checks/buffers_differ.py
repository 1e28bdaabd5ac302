"""Buffers of a model that stay as they are all the time, and are not the same on all ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.blame.quorum import odd_ones
from phalanx.model import Confidence
from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Sketch
from phalanx.verification.found import Found
from phalanx.verification.replicas import FAR, SAME, averages_parameters, is_model_parallel, spread
from phalanx.verification.samples import data_parallel_ranks

_OWN = re.compile(r"rank|local|shard|expert|offset", re.IGNORECASE)  # what is each rank's on purpose


def check(evidence: Evidence) -> Iterator[Found]:
    """Only constants: statistics that move with the rank's batches are legitimately its own."""
    ranks = data_parallel_ranks(evidence)
    if len(ranks) < 2 or averages_parameters(evidence) or is_model_parallel(evidence):
        return
    constants = {rank: _constants(evidence, rank) for rank in ranks}
    common = set.intersection(*(set(one) for one in constants.values()))
    apart = {key: {rank: constants[rank][key] for rank in ranks} for key in sorted(common)}
    apart = {key: at for key, at in apart.items() if spread(at.values()) > FAR and not _OWN.search(key[1])}
    if not apart:
        return
    (model, name), values = next(iter(apart.items()))
    odd = tuple(sorted(odd_ones({rank: str(value) for rank, value in values.items()}, ranks)))
    more = f" and {len(apart) - 1} more" if len(apart) > 1 else ""
    line = _line(evidence, ranks[0], model, name)
    yield Found(
        cause="buffers-differ",
        headline=f"{name_ranks(odd or ranks).capitalize()} hold{'s' if len(odd) == 1 else ''} {'other' if odd else 'different'} values in the buffer `{name}`{more}{f' ({line})' if line else ''} "
        "at every step, although weights and gradients are shared: each rank computes something else from the same input.",
        line=line,
        pattern="fix-consistency-between-devices",
        do=f"Compute `{name}` from the same data on all ranks, or give it rank 0's values before training: `dist.broadcast(model.{name}, src=0)`; DDP does it at each forward pass with `broadcast_buffers=True`.",
        why="Gradients are averaged over ranks that do not compute the same function.",
        title="Buffers differ between ranks",
        confidence=Confidence.LIKELY,
        culprits=odd,
        quotes=tuple((rank, line, f"`{name}`: norm {value[2]:.9g}, projection {value[0]:.9g}") for rank, value in list(values.items())[:4] if value is not None),
    )  # fmt: skip


def _constants(evidence: Evidence, rank: int) -> dict[tuple[int, str], Sketch]:
    """The buffers that are the same at all steps that were looked at, at least two."""
    seen: dict[tuple[int, str], list[Sketch | None]] = {}
    for step in evidence.ranks[rank].steps:
        for model, name, value in step.buffers:
            seen.setdefault((model, name), []).append(value)
    return {key: at[0] for key, at in seen.items() if len(at) > 1 and at[0] is not None and spread(at) <= SAME}


def _line(evidence: Evidence, rank: int, model: int, name: str) -> str:
    """The line that registers it, else the one that wraps the model."""
    wrapped = evidence.ranks[rank].wrapped.get(model)
    file = str(wrapped["line"] if wrapped else next((s.line for s in evidence.ranks[rank].steps), "")).rpartition(":")[
        0
    ]
    last = re.escape(name.rpartition(".")[2])
    given = re.compile(rf"register_buffer\(\s*[\"']{last}[\"']")
    found = [number for number, text in enumerate(evidence.lines(file), 1) if given.search(text)]
    return f"{file}:{found[0]}" if found else str(wrapped["line"]) if wrapped else ""
