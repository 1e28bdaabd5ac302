"""From what was read of a checkpoint to facts: what is missing, cut short, torn, not a number, or would load and be wrong."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from phalanx.checkpoint_files.model import NOT_THERE, Checkpoint, Kind, Part, Problem, Trouble
from phalanx.checkpoint_files.names import WRAPPERS, stripping_line, wrappers_in
from phalanx.checkpoint_files.values import NotFinite, Scanned
from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact

_SHOWN = 6
_RANDOM_FILE = re.compile(r"(?:^|/)(?:rng_state|random_states)_\d+\.")
_LIMITS = re.compile(r"(?:^|\.)(?:min_val|max_val|running_min|running_max|best|lowest|highest)$")
_OWN_OF_RANK = re.compile(r"running_mean|running_var|num_batches_tracked")
_ONE_FILE = {Trouble.CORRUPT: "file-corrupt", Trouble.TRUNCATED: "file-truncated"}


def fact(name: str, /, ranks: tuple[int, ...] = (), **fields: Any) -> Fact:
    """A fact of a checkpoint."""
    return make_fact(f"checkpoint.{name}", fields, ranks=ranks, source="check")


def judge(found: Checkpoint, scanned: Scanned) -> list[Fact]:
    """Everything that is wrong, the gravest kinds first."""
    judgements: tuple[Callable[[Checkpoint, Scanned], Iterator[Fact]], ...] = (
        _files,
        _torn,
        _alike,
        _not_finite,
        _replicas,
        _prefixes,
        _states,
    )
    return [one for judgement in judgements for one in judgement(found, scanned)]


def _files(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    by_kind: dict[Trouble, list[Problem]] = defaultdict(list)
    for problem in found.problems:
        by_kind[problem.trouble].append(problem)
    for problem in by_kind[Trouble.RUNS_CODE]:
        yield fact("runs-code", file=problem.file, calls=problem.detail)
    for problem in by_kind[Trouble.POINTER]:
        yield fact("pointer-broken", file=problem.file, detail=problem.detail)
    missing = by_kind[Trouble.MISSING]
    random = [problem for problem in missing if _RANDOM_FILE.search(problem.file)]
    lost = [problem for problem in missing if problem not in random]
    if lost:
        yield fact(
            "files-missing",
            _ranks(lost),
            format=found.format,
            count=len(lost),
            files=_names(lost),
            more=max(0, len(lost) - _SHOWN) or None,
            detail=lost[0].detail if lost[0].detail != NOT_THERE else None,
        )
    for trouble, name in _ONE_FILE.items():
        for problem in by_kind[trouble][:_SHOWN]:
            yield fact(name, _ranks([problem]), file=problem.file, detail=problem.detail, format=found.format)
    yield from _checksums(found, scanned)
    for problem in by_kind[Trouble.MISPLACED][:_SHOWN]:
        yield fact("file-misplaced", _ranks([problem]), file=problem.file, detail=problem.detail)
    if stale := by_kind[Trouble.STALE]:
        more = max(0, len(stale) - _SHOWN) or None
        yield fact("files-of-another-save", count=len(stale), files=_names(stale), more=more, detail=stale[0].detail)
    if random:
        names, ranks = _names(random), _ranks(random)
        yield fact("random-states-missing", ranks, files=names, count=len(random), world=found.world_size)


def _checksums(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    """Bytes that do not match the checksum beside them. If none of many match, none were written: PyTorch can leave them out."""
    if not scanned.wrong or (not scanned.right and len(scanned.wrong) > 1):
        return
    bad = {span.key for span in scanned.wrong}
    for part in found.parts:
        names = [one.name for one in part.tensors if one.span is not None and one.span.key in bad]
        if names:
            detail = f"the bytes of {_listed(names)} do not match their checksum"
            yield fact("file-corrupt", _rank(part), file=part.file, detail=detail, format=found.format)


def _torn(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    """The same counter with different values: files of different saves."""
    values: dict[str, dict[float, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part in found.parts:
        for name, value in part.stamps.items() if part.must_agree else ():
            values[name][value].append(part.file)
    for name, told in values.items():
        if len(told) > 1:
            most = sorted(told.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:4]
            words = "; ".join(f"{_number(value)} in {_listed(files)}" for value, files in most)
            yield fact("torn", stamp=name, told=words)
            return  # the others tell the same


def _alike(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    """Partitions of different ranks with the same numbers: one was written in the place of another."""
    if not found.fixed_world and "shards" not in found.parallelism:
        return
    prints: dict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
    for part in found.parts:
        sums = [
            (one.name, scanned.sums[one.span.key])
            for one in part.tensors
            if one.span is not None and one.span.key in scanned.sums and one.size >= 64 and "float" in one.dtype
        ]
        if len({crc for _, crc in sums}) > 1:  # one value alone may be zeros
            prints[tuple(sums)].append(part.file)
    for key, files in prints.items():
        if len(files) > 1:
            yield fact("shards-alike", files=tuple(files[:_SHOWN]), count=len(key))


def _not_finite(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    where = {one.span.key: part.file for part in found.parts for one in part.tensors if one.span is not None}
    for kind in (Kind.MODEL, Kind.OPTIMIZER):
        bad = [
            one
            for one in scanned.not_finite
            if one.tensor.kind is kind and not (_LIMITS.search(one.tensor.name) and not one.nans)
        ]
        if not bad:
            continue
        first = bad[0]
        assert first.tensor.span is not None
        yield fact(
            "not-finite",
            what=_kinds(bad),
            first=first.tensor.name,
            file=where.get(first.tensor.span.key, ""),
            numbers=_numbers(first),
            place=first.first,
            tensors=len(bad),
            total=sum(tensor.kind is kind for tensor in found.tensors),
            kind="model" if kind is Kind.MODEL else "optimizer state",
            names=tuple(one.tensor.name for one in bad[:_SHOWN]),
        )


def _replicas(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    """Files of ranks that all hold the model of DDP must hold the same one."""
    parts = [part for part in found.parts if part.rank is not None and part.tensors]
    models = [
        {one.name: one for one in part.tensors if one.kind is Kind.MODEL and not _OWN_OF_RANK.search(one.name)}
        for part in parts
    ]
    models = [one for one in models if one]
    if len(models) < 2 or found.fixed_world or not all(name.startswith("module.") for one in models for name in one):
        return
    if any(one.keys() != models[0].keys() for one in models):
        return
    differing = []
    for name, first in models[0].items():
        sums = {scanned.sums.get(one[name].span.key) for one in models if one[name].span is not None}  # type: ignore[union-attr]
        if len(sums - {None}) > 1:
            differing.append(first.name)
    if differing:
        files = tuple(part.file for part in parts[:_SHOWN])
        yield fact("replicas-differ", first=differing[0], files=files, count=len(differing), total=len(models[0]))


def _prefixes(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    names = list(found.weights())
    counted = Counter(prefix for name in names for prefix in set(wrappers_in(name)))
    if not counted or found.format.startswith("Megatron"):
        return
    for prefix, marked in counted.items():
        if prefix == "module." and found.format == "DeepSpeed":
            continue
        yield fact(
            "wrapper-prefix",
            prefix=prefix,
            wrapper=WRAPPERS[prefix],
            marked=marked,
            total=len(names),
            example=next(name for name in names if prefix in wrappers_in(name)),
            line=stripping_line([prefix]),
            mixed=prefix == "module." and marked < len(names),
        )


def _states(found: Checkpoint, scanned: Scanned) -> Iterator[Fact]:
    """What a resumed run would start without, where the files say that it is meant to be resumed."""
    states = {name for part in found.parts for name in part.states}
    stamps = {name: value for part in found.parts for name, value in part.stamps.items()}
    told = ", ".join(f"{name} {_number(value)}" for name, value in list(stamps.items())[:3])
    for part in found.parts:
        if str(part.states.get("model", "")).startswith("a pickled "):
            yield fact("pickled-model", file=part.file, name=part.states["model"].removeprefix("a pickled "))
    if not found.is_complete or "model" not in states:
        return
    trained = any(value > 0 for name, value in stamps.items() if "save_counter" not in name)
    if trained and "optimizer" not in states:
        yield fact("optimizer-missing", stamps=told)
    for part in found.parts:
        if part.states.get("optimizer") == "no moments" and trained and max(stamps.values()) > 1:
            yield fact("optimizer-empty", file=part.file, stamps=told)
    yield from _misfits(found)


def _misfits(found: Checkpoint) -> Iterator[Fact]:
    """Moments whose shape no parameter has: the optimizer is another model's. Only where nothing is sharded."""
    moments = [
        one for one in found.tensors if one.kind is Kind.OPTIMIZER and one.name.endswith(("exp_avg", "momentum_buffer"))
    ]
    shapes = {one.full_shape for one in found.weights().values()}
    if not moments or found.fixed_world or "shards" in found.parallelism or any(one.sharding for one in found.tensors):
        return
    odd = [one for one in moments if one.full_shape not in shapes]
    if odd and shapes:
        shape = str(list(odd[0].full_shape))
        yield fact("optimizer-misfit", name=odd[0].name, shape=shape, count=len(odd), total=len(moments))


def other_world_size(found: Checkpoint, wanted: int) -> Iterator[Fact]:
    """A checkpoint whose shards belong to their ranks, asked for by another number of them."""
    if found.world_size and found.fixed_world and found.world_size != wanted:
        yield fact(
            "other-world-size", saved=found.world_size, wanted=wanted, why=found.fixed_world, format=found.format
        )


def _ranks(problems: list[Problem]) -> tuple[int, ...]:
    return tuple(sorted({one.rank for one in problems if one.rank is not None}))


def _rank(part: Part) -> tuple[int, ...]:
    return () if part.rank is None else (part.rank,)


def _names(problems: list[Problem]) -> tuple[str, ...]:
    return tuple(one.file for one in problems[:_SHOWN])


def _listed(names: list[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kinds(bad: list[NotFinite]) -> str:
    nans, infinities = any(one.nans for one in bad), any(one.infinities for one in bad)
    return "NaN and infinity" if nans and infinities else "NaN" if nans else "infinity"


def _numbers(one: NotFinite) -> str:
    words = [f"{one.nans:,} NaN" if one.nans else "", f"{one.infinities:,} infinite" if one.infinities else ""]
    return f"{' and '.join(filter(None, words))} of {one.count:,} numbers"
