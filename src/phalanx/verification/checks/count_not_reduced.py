"""A total over all ranks that is divided by the number of samples of one, and means that are summed and not divided."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from phalanx.model import Confidence
from phalanx.verification.evaluation import calls_after, evaluations
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks, shared
from phalanx.verification.sources import RANKS, tree_of

_OWN_LENGTH = re.compile(r"len\([\w.]*(?:loader|sampler|dl|batches)\w*\)")
_COLLECTIVE = ("all_reduce", "allreduce", "reduce", "gather", "all_gather", "all_gather_object", "gather_for_metrics")


def check(evidence: Evidence) -> Iterator[Found]:
    """An evaluation that is dealt out, a reduced sum, and a count that only this rank's loop adds to."""
    ranks = data_parallel_ranks(evidence)
    for passes in evaluations(evidence, ranks) if ranks else ():
        overlap = shared(passes)
        if any(2 * overlap[rank] > len(one.samples) for rank, one in passes.items()):
            continue  # every rank evaluates all of it
        rank, one = next(iter(passes.items()))
        calls = calls_after(evidence.ranks[rank], one)
        if not calls or any(call["op"] not in ("allreduce", "reduce") or call["n"] != 1 for call in calls):
            continue
        for place in dict.fromkeys(str(call["line"]) for call in calls if call["red"] == "SUM"):
            if (summed := _summed_means(evidence, place)) is not None:
                yield _means(place, summed, len(ranks))
                return
            found = _ratio(evidence, place)
            if found is not None:
                line, total, count = found
                own, every = len(one.samples), sum(len(each.samples) for each in passes.values())
                yield Found(
                    cause="metric-count-not-reduced",
                    headline=f"`{total}` is summed over the ranks ({place}) but divided by `{count}` of one rank ({line}), {own} of {every} samples: the metric is {every / own:.3g} × too large.",
                    line=line,
                    pattern="fix-distributed-api-usage",
                    do=f"Reduce `{count}` as well before dividing: `dist.all_reduce({count})`.",
                    why="The numerator is of all samples and the denominator of one rank's.",
                    title="A metric divided by one rank's count",
                    confidence=Confidence.LIKELY,
                )  # fmt: skip
                return


def _ratio(evidence: Evidence, place: str) -> tuple[str, str, str] | None:
    """The line, the reduced name and the local one, where a reduced name is divided by one that a loop counts up."""
    name, _, number = place.rpartition(":")
    scope = _scope(tree_of(evidence, name), int(number) if number.isdigit() else 0)
    reduced = {ast.unparse(one.args[0]) for one in _calls(scope) if one.args}
    if any(len(ast.unparse(one.args[0]).split(",")) > 1 for one in _calls(scope) if one.args):
        return None
    together = {word.id for one in _calls(scope) for word in ast.walk(one) if isinstance(word, ast.Name)}
    counted = {ast.unparse(one.target) for one in ast.walk(scope) if isinstance(one, ast.AugAssign)}
    made = [one for one in ast.walk(scope) if isinstance(one, ast.Assign)]
    for node in ast.walk(scope):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            continue
        total = next((word for word in reduced if word in {ast.unparse(one) for one in ast.walk(node.left)}), None)
        count = ast.unparse(node.right).removesuffix(".item()")
        remade = [one for one in made if any(ast.unparse(target) == count for target in one.targets)]
        comes_from = {word.id for one in remade for word in ast.walk(one.value) if isinstance(word, ast.Name)}
        if total and count in counted and count not in together and not comes_from & (reduced | together):
            around = evidence.source(f"{name}:{node.lineno}")
            if node.lineno >= int(number) and not _mentions_ranks(around):
                return f"{name}:{node.lineno}", total, count
    return None


def _means(place: str, name: str, size: int) -> Found:
    return Found(
        cause="metric-summed-not-averaged",
        headline=f"`{name}` is a mean of each rank, summed over the {size} ranks ({place}) and never divided: the metric is about {size} × too large.",
        line=place,
        pattern="fix-distributed-api-usage",
        do=f"Divide behind the reduction, `{name} /= dist.get_world_size()`; where shares differ, sum totals and counts instead.",
        why="A sum of means grows with the number of ranks.",
        title="Means of ranks are summed",
        confidence=Confidence.LIKELY,
    )  # fmt: skip


def _summed_means(evidence: Evidence, place: str) -> str | None:
    """The name that a line reduces, where it was made by a division and nothing divides it afterwards."""
    file, _, number = place.rpartition(":")
    scope = _scope(tree_of(evidence, file), int(number) if number.isdigit() else 0)
    here = [
        one for one in _calls(scope) if one.lineno == int(number) and one.args and isinstance(one.args[0], ast.Name)
    ]
    name = ast.unparse(here[0].args[0]) if here else ""
    made = [one.value for one in ast.walk(scope) if isinstance(one, ast.Assign) and _gives(one, name)]
    means = [value for value in made if _is_own_mean(value, scope)]
    later = [one for one in ast.walk(scope) if getattr(one, "lineno", 0) >= int(number) and _divides(one)]
    return (
        name if name and len(means) == len(made) == 1 and not any(name in ast.unparse(one) for one in later) else None
    )


def _is_own_mean(value: ast.expr, scope: ast.AST) -> bool:
    """Divided by what this rank alone counted, or by the length of its loader; not by the number of ranks as well."""
    counted = {ast.unparse(one.target) for one in ast.walk(scope) if isinstance(one, ast.AugAssign)}
    counted -= {word.id for one in _calls(scope) for word in ast.walk(one) if isinstance(word, ast.Name)}
    by = [
        ast.unparse(one.right) for one in ast.walk(value) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)
    ]
    is_own = len(by) == 1 and (by[0] in counted or _OWN_LENGTH.fullmatch(by[0]) is not None)
    return is_own and not _mentions_ranks(ast.unparse(value))


def _gives(node: ast.Assign, name: str) -> bool:
    return any(ast.unparse(target) == name for target in node.targets)


def _divides(node: ast.AST) -> bool:
    """A division, in place or not, or a product with a fraction."""
    is_operator = isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(
        node.op, (ast.Div, ast.FloorDiv, ast.Mult)
    )
    return is_operator or (
        isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("div", "div_", "mul_")
    )


def _scope(tree: ast.Module, number: int) -> ast.AST:
    """The innermost function around a line, else the whole file."""
    inside = [
        one
        for one in ast.walk(tree)
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.lineno <= number <= (one.end_lineno or 0)
    ]
    return max(inside, key=lambda one: one.lineno, default=tree)


def _calls(scope: ast.AST) -> list[ast.Call]:
    return [
        one
        for one in ast.walk(scope)
        if isinstance(one, ast.Call) and ast.unparse(one.func).rpartition(".")[2] in _COLLECTIVE
    ]


def _mentions_ranks(text: str) -> bool:
    return re.search(RANKS, text, re.IGNORECASE) is not None
