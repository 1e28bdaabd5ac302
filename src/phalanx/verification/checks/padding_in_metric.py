"""A sampler that fills up the last shares with samples that are already dealt, and a metric that sums over all ranks."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from phalanx.model import Confidence
from phalanx.verification.evaluation import calls_after, combines, evaluations
from phalanx.verification.evidence import Evidence, Record
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks

_AROUND = 3  # lines beside a call of the function that gathers
_CUTS = re.compile(
    r"\[\s*:(?!\s*,)|gather_for_metrics|unique|mask|dict|set\(|seen|ind(ex|ices)|idx|\bids?\b|truncat|dedup|valid|remainder"
)


def check(evidence: Evidence) -> Iterator[Found]:
    """Where results are summed; or gathered, and no line near it cuts off what is too much."""
    ranks = data_parallel_ranks(evidence)
    for passes in evaluations(evidence, ranks) if ranks else ():
        some = passes[ranks[0]]
        if some.replicas != len(ranks) or not all(one.is_whole for one in passes.values()):
            continue
        seen = Counter(index for one in passes.values() for index in one.ids)
        length = some.loader.get("length")
        twice = sum(count - 1 for count in seen.values())
        most = (
            len(ranks) if not some.loader["told"].get("in_batches") else len(ranks) * (some.loader["batch_size"] or 1)
        )
        if None in seen or not length or not 0 < twice < most or sum(seen.values()) != length + twice:
            continue
        calls = {rank: calls_after(evidence.ranks[rank], one) for rank, one in passes.items()}
        if not combines(calls) and not _gathers_all(evidence, calls[ranks[0]]):
            continue
        joined = next((str(call["line"]) for call in calls[ranks[0]] if call["op"] != "broadcast" and call["line"]), "")
        where = f", and all of it is joined at {joined}" if joined else ""
        again = ", ".join(f"#{index}" for index, count in sorted(seen.items()) if count > 1)
        yield Found(
            cause="padding-in-metric",
            headline=f"{twice} of {length} evaluation samples count twice in the metric ({again}): the sampler of the loader at {some.made} fills up the shares of {len(ranks)} ranks{where}.",
            line=some.made,
            pattern="fix-batch-size-or-data-partition",
            do="Count each sample once: deal the evaluation set with a sampler that does not pad (`Subset(dataset, range(rank, len(dataset), world_size))`), or gather the predictions and cut them to `len(dataset)` (Accelerate: `gather_for_metrics`).",
            why="The same number of samples for every rank is made by giving some twice.",
            title="Padding counts in a metric",
            confidence=Confidence.LIKELY,
            quotes=((ranks[0], joined, evidence.source(joined) or "results are joined here"),) if joined else (),
        )  # fmt: skip
        return


def _gathers_all(evidence: Evidence, calls: Sequence[Record]) -> bool:
    """Outputs are gathered by a line of the user's own, and none of the lines around it drops or marks what came twice."""
    given = [call for call in calls if call["op"] != "broadcast"]  # Accelerate hands out random states at each pass
    gathers = [call for call in given if str(call["op"]).lstrip("_").startswith("allgather")]
    places = {str(call["line"]) for call in gathers if "gather" in evidence.source(str(call["line"]))}
    if not places or len(gathers) < len(given):
        return False
    return not any(_CUTS.search(text) for place in places for text in _behind(evidence, place))


def _behind(evidence: Evidence, place: str) -> Iterator[str]:
    """The lines that what was gathered can reach: from the gather to the end of its function, and around calls of that function."""
    name, _, number = place.rpartition(":")
    lines, at = evidence.lines(name), int(number)
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except SyntaxError:
        yield from lines
        return
    functions = [one for one in nodes if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around = [one for one in functions if one.lineno <= at <= (one.end_lineno or 0)]
    inner = max(around, key=lambda one: one.lineno, default=None)
    yield from lines[at - 1 : inner.end_lineno if inner else None]
    if inner is not None:
        called = re.compile(rf"\b{re.escape(inner.name)}\(")
        for index, text in enumerate(lines):
            if called.search(text) and index + 1 != inner.lineno:
                yield from lines[max(0, index - _AROUND) : index + 1 + _AROUND]
