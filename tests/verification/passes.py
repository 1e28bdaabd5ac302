"""Passes over loaders, made by hand: records as the observer of a rank writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.verification.evidence import Evidence, RankEvidence
from tests.verification.made import Job

Record = dict[str, Any]


def loader(number: int = 0, sampler: str = "DistributedSampler", **told: Any) -> Record:
    fields = {"batch_size": 4, "length": 32, "drop_last": False, "workers": 0, "iterable": False, "made": "train.py:6"}
    named = {key: told.pop(key) for key in list(told) if key in fields}
    return {"k": "loader", "l": number, "line": "train.py:12", "sampler": sampler, "told": told, **fields, **named}


def one_pass(
    ids: Sequence[int | None],
    number: int = 0,
    epoch: int = 0,
    *,
    rows: Sequence[int] | None = None,
    set_epoch: int | None = 0,
    whole: bool = True,
    trains: bool = True,
    evals: Record | None = None,
    calls: Sequence[list[Any]] = (),
) -> list[Record]:
    """A pass in batches of four. A step follows each batch where it trains, and a forward pass where it does not."""
    rows = [1000 + (index or 0) for index in ids] if rows is None else rows
    found: list[Record] = [{"k": "epoch", "l": number, "e": epoch, "set_epoch": set_epoch, "line": "train.py:12"}]
    for start in range(0, len(ids), 4):
        part = list(ids[start : start + 4])
        told = part if None not in part else None
        found.append(
            {"k": "batch", "l": number, "e": epoch, "ids": told, "mark": start, "rows": list(rows[start : start + 4])}
        )
        if trains:
            found.append({"k": "step", "o": 0, "n": 0, "step": 0, "events": []})
        else:
            found.append(
                {"k": "eval", "m": 0, "training": False, "layers": ["Dropout"], "line": "train.py:20", "step": 3}
                | (evals or {})
            )
    if whole:
        found.append({"k": "exhausted", "l": number, "e": epoch})
    if calls:
        found.append({"k": "end", "events": list(calls)})
    return found


def job(*ranks: Sequence[Record], wrapped: bool = True) -> Evidence:
    """Ranks that train one model, each with these records behind those of a healthy job."""
    base = Job(len(ranks), steps=1, wrapped=wrapped).evidence
    return Evidence(
        {rank: RankEvidence(rank, (*base.ranks[rank].records, *records)) for rank, records in enumerate(ranks)},
        len(ranks),
    )
