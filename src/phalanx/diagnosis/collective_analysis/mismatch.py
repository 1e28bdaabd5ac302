"""Finds calls of one number in one group that are not the same call: another operation, size, type or root.

The majority of the group is taken to be right, never the first file. Where sizes may differ by the operation's nature (an
exchange of uneven parts, what only the root gives or gets), they are not compared.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import polars as pl

from phalanx.diagnosis.collective_analysis.observation import Break, Observation, observation
from phalanx.diagnosis.collective_analysis.trace_state import TraceState
from phalanx.model.ranks import name_ranks
from phalanx.model.trace import Traces

# Which side's number of elements all ranks must agree on. Operations that are not here may differ in size.
_INPUT = frozenset(
    {
        "all_reduce",
        "broadcast",
        "_broadcast_oop",
        "reduce",
        "_reduce_oop",
        "gather",
        "all_gather",
        "_all_gather_base",
        "all_gather_single",
    }
    | {"reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single", "all_reduce_sparse"}
)
_OUTPUT = frozenset({"scatter"})
# Whose results have one size and type on all ranks, too; parts of a reduce_scatter of lists may be uneven.
_RESULT = frozenset(
    {"all_reduce", "all_gather", "_all_gather_base", "all_gather_single", "_reduce_scatter_base"}
    | {"reduce_scatter_single"}
)
_EMPTY = "coalesced||"
_UNTYPED = frozenset({"barrier", "coalesced", "all_reduce_barrier", "unknown", "split"})
# Names under which one and the same operation is recorded.
_SAME = {
    "_all_gather_base": "all_gather_single",
    "_reduce_scatter_base": "reduce_scatter_single",
    "_broadcast_oop": "broadcast",
    "_reduce_oop": "reduce",
    "all_reduce_barrier": "barrier",
}
_RECENT = 16  # calls that ranks may go on after a mismatch before it stops them
_MOST_CANDIDATES = 200_000
_BEFORE, _SHARED = 12, 3  # numbers looked at before a mismatch, and how many of them two groups must share to be alike
_WORDS = {"op": "operation", "dtype": "type", "shape": "size", "root": "root"}


def find_mismatches(traces: Traces, state: TraceState) -> list[Observation]:
    """The first mismatch of each group, folded by who is accused: one rank's slip shows in all of its groups."""
    rows = _differing(traces)
    if rows.is_empty():
        return []
    first: dict[int, int] = {}
    for group, seq in rows.select("group", "seq").unique().iter_rows():
        first[group] = min(seq, first.get(group, seq))
    by_ranks: dict[tuple[object, ...], list[tuple[int, Observation]]] = defaultdict(list)
    for group, seq in first.items():
        here = rows.filter((pl.col("group") == group) & (pl.col("seq") == seq))
        recent = explains_a_stall(state, group, seq)
        made = _judge(state, group, seq, here, partial(siblings_say, traces, state, group, seq))
        if made is not None:
            made = replace(made, is_past=not recent)
            by_ranks[(made.ranks, made.waiting if not made.ranks else ())].append(
                (len(state.members.get(group, ())), made)
            )
    chosen = [max(found, key=lambda pair: (pair[0], pair[1].text))[1] for found in by_ranks.values()]
    return sorted(chosen, key=lambda one: (not one.ranks, len(one.ranks), one.text))[:4]


def _differing(traces: Traces) -> pl.DataFrame:
    """All calls of the numbers at which signatures differ. A number is made of each call's words; equal words, equal call."""
    words = [pl.col(name).to_physical().cast(pl.UInt64).fill_null(0) for name in ("op", "shape", "dtype")]
    root = pl.col("root").fill_null(-1).cast(pl.Int64).cast(pl.UInt64, strict=False).fill_null(0)
    key = words[0] * 1_000_003 + words[1] * 16_777_259 + words[2] * 2_147_483_659 + root
    collectives = traces.calls.lazy().filter(~pl.col("p2p") & pl.col("seq").is_not_null())
    numbers = (
        collectives.select("group", "seq", key=key)
        .group_by("group", "seq")
        .agg(low=pl.col("key").min(), high=pl.col("key").max())
        .filter(pl.col("low") != pl.col("high"))
        .select("group", "seq")
        .collect()
    )
    if (
        len(numbers) > _MOST_CANDIDATES
    ):  # sizes that differ all the time, as in mixtures of experts: the first tell enough
        numbers = numbers.sort("seq").group_by("group", maintain_order=True).head(2000)
    columns = ["rank", "group", "seq", "op", "shape", "dtype", "root", "place", "order"]
    rows = collectives.select(columns).join(numbers.lazy(), on=["group", "seq"], how="semi").collect()
    return _truly(rows) if len(rows) else rows


def _truly(rows: pl.DataFrame) -> pl.DataFrame:
    """Only what differs in a way that matters, with `signature` beside the words."""
    combos = rows.select("op", "shape", "dtype").unique()
    signatures = [_signature(op, shape, dtype) for op, shape, dtype in combos.iter_rows()]
    marked = rows.join(
        combos.with_columns(signature=pl.Series(signatures, dtype=pl.String)),
        on=["op", "shape", "dtype"],
        nulls_equal=True,
    ).with_columns(
        signature=pl.concat_str("signature", pl.lit(" from root "), pl.col("root").cast(pl.String).fill_null("?"))
    )
    # A coalesced call is several entries under one number: what a rank called there is all of them, in its order.
    whole = marked.sort("order").group_by("group", "seq", "rank").agg(pl.col("signature").str.join("; "))
    marked = (
        marked.drop("signature").unique(["group", "seq", "rank"], keep="first").join(whole, on=["group", "seq", "rank"])
    )
    # A rank that had nothing to coalesce made the same call.
    told = pl.col("signature").str
    is_empty = told.starts_with(_EMPTY) & ~told.contains("; ", literal=True)
    others_coalesce = (told.contains(_EMPTY, literal=True) & ~is_empty).any().over("group", "seq")
    marked = marked.filter(~(is_empty & others_coalesce))
    several = marked.group_by("group", "seq").agg(pl.col("signature").n_unique()).filter(pl.col("signature") > 1)
    return marked.join(several.select("group", "seq"), on=["group", "seq"], how="semi")


def _signature(op: str | None, shape: str | None, dtype: str | None) -> str:
    """`op|type|elements`, each left empty where ranks need not agree on it."""
    op = op or "unknown"
    name = _SAME.get(op, op)
    taken, _, given = (dtype or "").partition(">")
    kind = "" if op in _UNTYPED else (given if op in _OUTPUT else taken or given)
    if op in _RESULT and taken and given:
        kind = f"{taken}>{given}"
    taken, _, given = (shape or "").partition(">")
    sides = (taken, given) if op in _RESULT else (taken,) if op in _INPUT else (given,) if op in _OUTPUT else ()
    return f"{name}|{kind}|{'>'.join(map(_elements, sides))}"


def _elements(sizes: str) -> str:
    """How many there are in all; nothing where it is not told."""
    try:
        return str(int(sum(math.prod(size) for size in json.loads(sizes))))
    except (ValueError, TypeError, OverflowError):
        return ""


def siblings_say(traces: Traces, state: TraceState, group: int, seq: int) -> Counter[str]:
    """What groups of the same kind and size called at this number, if they called the same as this one before it.

    The tensor-parallel pairs of one pipeline stage go through the same calls; where two ranks differ, the other pairs can tell.
    """
    kind = state.kinds.get(group)
    size = len(state.members.get(group, ()))
    alike = [one for one, words in state.kinds.items() if words == kind and len(state.members.get(one, ())) == size]
    if not kind or len(alike) < 2:
        return Counter()
    rows = traces.calls.lazy().filter(
        ~pl.col("p2p") & pl.col("group").is_in(alike) & pl.col("seq").is_between(seq - _BEFORE, seq)
    )
    history: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one, number, op, shape, dtype in (
        rows.select("group", "seq", "op", "shape", "dtype").unique().collect().iter_rows()
    ):
        history[one][number].add(_signature(op, shape, dtype))
    own = {number: words for number, words in history[group].items() if number < seq and len(words) == 1}
    votes: Counter[str] = Counter()
    for one, calls in history.items():
        shared = [number for number in own if number in calls]
        if one != group and len(shared) >= _SHARED and all(calls[number] == own[number] for number in shared):
            votes.update(calls.get(seq, ()))
    return votes


def explains_a_stall(state: TraceState, group: int, seq: int) -> bool:
    """Whether a mismatch stands near the end: one that all members went past long ago did not stop them."""
    members = [rank for rank in state.members.get(group, ()) if rank in state.present]
    return seq + _RECENT >= min((state.position(group, rank).done for rank in members), default=0)


def _judge(
    state: TraceState, group: int, seq: int, rows: pl.DataFrame, ask_siblings: Callable[[], Counter[str]]
) -> Observation | None:
    sides: dict[str, list[int]] = defaultdict(list)
    for rank, signature in rows.select("rank", "signature").sort("rank").iter_rows():
        sides[signature].append(rank)
    ordered = sorted(sides.items(), key=lambda item: (-len(item[1]), item[0]))
    (common, most), rest = ordered[0], ordered[1:]
    others = sorted({rank for _, ranks in rest for rank in ranks} - set(most))
    if not others:
        return None
    samples = {row["rank"]: row for row in rows.iter_rows(named=True)}
    kind = _kind(common, rest[0][0])
    where = f"#{seq} of group {state.labels.get(group, '?')}"
    backed_by_siblings = False
    if len(most) <= len(others):
        backed = _backed(ordered, ask_siblings()) if len(rest) == 1 else None
        if backed is not None:
            common, most = backed
            rest = [side for side in ordered if side[0] != common]
            others = sorted({rank for _, ranks in rest for rank in ranks})
            backed_by_siblings = True
    fields = {"what": _WORDS[kind], "call": where}
    if not backed_by_siblings and len(most) <= len(others):
        everyone = tuple(sorted({*most, *others}))
        tied = _sides(ordered, samples, kind)
        return observation(Break.MISMATCH, (), everyone, samples[most[0]]["place"], most[0], sides=tied, **fields)
    own = [_shown(samples[rest[0][1][0]], kind), *_sides(rest[1:], samples, kind)]
    fields |= {"own": ", ".join(own), "common": _shown(samples[most[0]], kind)}
    place = samples[others[0]]["place"]
    return observation(
        Break.MISMATCH, tuple(others), tuple(most), place, others[0], backed=backed_by_siblings, **fields
    )


def _sides(sides: Sequence[tuple[str, list[int]]], samples: Mapping[int, dict[str, Any]], kind: str) -> list[str]:
    """`ranks 1, 3 called all_reduce of [[4]] Float`, of the first few."""
    return [f"{name_ranks(ranks)} called {_shown(samples[ranks[0]], kind)}" for _, ranks in sides[:4]]


def _backed(sides: list[tuple[str, list[int]]], votes: Counter[str]) -> tuple[str, list[int]] | None:
    """The side that sibling groups take, if they take one only."""
    taken = [side for side in sides if votes[side[0].split(" from root ")[0]]]
    return taken[0] if len(taken) == 1 else None


def _kind(one: str, other: str) -> str:
    """In what two calls, or two coalesced ones, first differ."""
    for left, right in zip_longest(one.split("; "), other.split("; "), fillvalue=""):
        for kind, first, second in zip(("op", "dtype", "shape"), left.split("|"), right.split("|"), strict=False):
            if first.split(" from root ")[0] != second.split(" from root ")[0]:
                return kind
    return "root"


def _shown(row: dict[str, object], kind: str) -> str:
    shape, dtype = (str(row[name] or "?").partition(">") for name in ("shape", "dtype"))
    size = next((one for one in (shape[0], shape[2]) if one != "[]"), "")
    if row["op"] in _RESULT and size == shape[0] != shape[2] and shape[2]:
        size = f"{size} into {shape[2]}"
    kinds = "into ".join(f"{one} " for one in dict.fromkeys((dtype[0], dtype[2])) if one).rstrip()
    words = f"{row['op']} of {size} {kinds}" if size else str(row["op"])
    return f"{words} from root {row['root']}" if kind == "root" else words
