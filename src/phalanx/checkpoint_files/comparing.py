"""A checkpoint against another one, or against a model: names, shapes and formats that differ, and the line that converts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from phalanx.checkpoint_files.judging import fact
from phalanx.checkpoint_files.model import Checkpoint
from phalanx.checkpoint_files.names import common_prefix, stripping_line, unwrapped, wrappers_in
from phalanx.model.fact import Fact


@dataclass(frozen=True, slots=True)
class Expected:
    """What the checkpoint is to be loaded into: shapes and number formats by name."""

    label: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]


def expected_of(found: Checkpoint, label: str) -> Expected:
    """Another checkpoint as what is expected."""
    weights = found.weights()
    return Expected(
        label,
        {name: one.full_shape for name, one in weights.items()},
        {name: one.dtype for name, one in weights.items() if one.dtype},
    )


def compare(found: Checkpoint, other: Expected) -> list[Fact]:
    """What would not load, or would load and be wrong."""
    mine = {name: one.full_shape for name, one in found.weights().items()}
    if not mine or not other.shapes:
        return []
    facts: list[Fact] = []
    renamed = {name: name for name in mine}
    if mine.keys() != other.shapes.keys():
        converted = _conversion(mine.keys(), other)
        if converted is not None:
            named, renamed = converted
            facts.append(named)
        else:
            facts += _names(mine.keys(), other)
    facts += _shapes(mine, renamed, other)
    facts += _dtypes({name: one.dtype for name, one in found.weights().items()}, renamed, other)
    return facts


def _conversion(mine: Collection[str], other: Expected) -> tuple[Fact, dict[str, str]] | None:
    """The prefix that is all the difference, with the line that takes it off or puts it on."""
    bare = {unwrapped(name): name for name in mine}
    theirs = {unwrapped(name): name for name in other.shapes}
    if bare.keys() == theirs.keys() and len(bare) == len(mine):
        here = {prefix for name in mine for prefix in wrappers_in(name)}
        there = {prefix for name in other.shapes for prefix in wrappers_in(name)}
        extra, lacking = here - there, there - here
        if extra and not lacking:
            made = _prefix_fact(extra, "the checkpoint", stripping_line(extra), mine, other)
            return made, {bare[name]: theirs[name] for name in bare}
        if lacking and not extra:
            line = _wrapping_line(lacking)
            return _prefix_fact(lacking, other.label, line, mine, other), {bare[name]: theirs[name] for name in bare}
    if prefix := common_prefix(mine, other.shapes):
        line = f'state_dict = {{name.removeprefix("{prefix}"): tensor for name, tensor in state_dict.items()}}'
        made = _prefix_fact({prefix}, "the checkpoint", line, mine, other)
        return made, {name: name.removeprefix(prefix) for name in mine}
    if prefix := common_prefix(other.shapes, mine):
        line = f'state_dict = {{"{prefix}" + name: tensor for name, tensor in state_dict.items()}}'
        return _prefix_fact({prefix}, other.label, line, mine, other), {name: prefix + name for name in mine}
    return None


def _wrapping_line(prefixes: Collection[str]) -> str:
    if set(prefixes) == {"module."}:
        return "model.module.load_state_dict(state_dict)"
    if set(prefixes) == {"_orig_mod."}:
        return "model._orig_mod.load_state_dict(state_dict)"
    return "load the state_dict before the model is wrapped"


def _prefix_fact(prefixes: Collection[str], side: str, line: str, mine: Collection[str], other: Expected) -> Fact:
    return fact(
        "prefix-differs",
        prefix=", ".join(sorted(prefixes)),
        side=side,
        total=len(mine),
        line=line,
        other=other.label,
        dropped=not set(mine) & set(other.shapes),
    )


def _names(mine: Collection[str], other: Expected) -> Iterator[Fact]:
    lacking = [name for name in other.shapes if name not in set(mine)]
    extra = [name for name in mine if name not in other.shapes]
    common = len(mine) - len(extra)
    if not common:
        yield fact("nothing-in-common", mine=extra[0], theirs=lacking[0], other=other.label, wanted=len(other.shapes))
        return
    yield fact(
        "names-differ",
        common=common,
        lacking=len(lacking),
        extra=len(extra),
        lacking_name=lacking[0] if lacking else None,
        extra_name=extra[0] if extra else None,
        other=other.label,
        wanted=len(other.shapes),
    )


def _shapes(mine: Mapping[str, tuple[int, ...]], renamed: Mapping[str, str], other: Expected) -> Iterator[Fact]:
    odd = [
        (name, shape, other.shapes[renamed[name]])
        for name, shape in mine.items()
        if renamed.get(name) in other.shapes and other.shapes[renamed[name]] != shape
    ]
    if odd:
        name, here, there = odd[0]
        ratios = {_ratio(one, two) for _, one, two in odd}
        ratio = str(ratios.pop()) if len(ratios) == 1 and None not in ratios else None
        yield fact(
            "shapes-differ",
            name=name,
            mine=str(list(here)),
            theirs=str(list(there)),
            other=other.label,
            count=len(odd),
            ratio=ratio,
        )


def _ratio(one: tuple[int, ...], two: tuple[int, ...]) -> int | None:
    """How many times the first side of one fits the other: tensor-parallel slices differ by a whole factor in one side."""
    if len(one) != len(two):
        return None
    odd = [(first, second) for first, second in zip(one, two, strict=True) if first != second]
    if len(odd) != 1 or not min(odd[0]):
        return None
    small, large = sorted(odd[0])
    return large // small if large % small == 0 else None


def _dtypes(mine: Mapping[str, str], renamed: Mapping[str, str], other: Expected) -> Iterator[Fact]:
    odd = [
        (name, dtype, other.dtypes[renamed[name]])
        for name, dtype in mine.items()
        if dtype and renamed.get(name) in other.dtypes and other.dtypes[renamed[name]] != dtype
    ]
    if odd:
        name, here, there = odd[0]
        yield fact("dtypes-differ", name=name, mine=here, theirs=there, other=other.label, count=len(odd))
