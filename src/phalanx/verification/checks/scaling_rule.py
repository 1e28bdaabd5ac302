"""A learning rate that is scaled with the batch of one rank, where the rule takes the batch of all ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from phalanx.model import Confidence
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks
from phalanx.verification.sources import RANKS, tree_of

_RATE = re.compile(r"(?:^|[._])(?:\w*lr|learning_rate|\w*_rate)$", re.IGNORECASE)
_BATCH = re.compile(r"batch|(?:^|[._])bs$", re.IGNORECASE)
_BY_RANKS = re.compile(RANKS, re.IGNORECASE)


def check(evidence: Evidence) -> Iterator[Found]:
    """Where the same name is the batch of the rank's loader and the numerator of the rule."""
    ranks = data_parallel_ranks(evidence)
    one = evidence.ranks[ranks[0]] if len(ranks) > 1 else None
    for name in sorted({held.line.rpartition(":")[0] for held in one.optimizers.values()}) if one is not None else ():
        tree = tree_of(evidence, name)
        rates = [(target, value) for target, value in _given(tree) if _RATE.search(target)]
        if any(_BY_RANKS.search(ast.unparse(value)) for _, value in rates):
            continue  # whoever wrote it thought of the ranks
        for _, value in rates:
            batch = _scaled_by(value)
            if batch and batch in _batches_of_loaders(tree) and not _counts_ranks(tree, batch):
                yield _found(evidence, f"{name}:{value.lineno}", ast.unparse(value), batch, len(ranks))
                return


def _given(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are given, by assignments and by keywords of calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((ast.unparse(target), node.value) for target in node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            yield ast.unparse(node.target), node.value
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value


def _scaled_by(value: ast.expr) -> str:
    """The batch in `base * batch / 256`; empty where it is no such rule."""
    for node in ast.walk(value):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            continue
        by = node.right
        is_reference = isinstance(by, ast.Constant) and isinstance(by.value, (int, float)) and by.value > 1
        if is_reference or (isinstance(by, (ast.Name, ast.Attribute)) and _BATCH.search(ast.unparse(by))):
            names = [one for one in ast.walk(node.left) if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript))]
            return next((text for one in names if _BATCH.search(text := ast.unparse(one))), "")
    return ""


def _batches_of_loaders(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("DataLoader"):
            given = [one.value for one in node.keywords if one.arg == "batch_size"] or node.args[1:2]
            found |= {ast.unparse(one) for one in given}
    return found


def _counts_ranks(tree: ast.Module, batch: str) -> bool:
    return any(target == batch and _BY_RANKS.search(ast.unparse(value)) for target, value in _given(tree))


def _found(evidence: Evidence, line: str, rule: str, batch: str, size: int) -> Found:
    sizes = [one["batch_size"] for rank in evidence.ranks.values() for one in rank.all("loader") if one["batch_size"]]
    shown = f"{sizes[0]} samples of one rank, not the {size * sizes[0]} of all {size}" if sizes else "that of one rank"
    return Found(
        cause="learning-rate-not-scaled",
        headline=f"The learning rate is scaled with `{batch}` ({line}: `{rule[:80]}`), {shown}: it is 1/{size} of what the rule gives for the global batch.",
        line=line,
        pattern="fix-learning-rate",
        do=f"Scale with the global batch: multiply `{batch}` by `dist.get_world_size()` there.",
        why="The rule goes by the number of samples behind one update, and each update averages the batches of all ranks.",
        title="Learning rate scaled without the number of ranks",
        confidence=Confidence.LIKELY,
    )  # fmt: skip
