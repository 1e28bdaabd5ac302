"""One rank against several: the same global batches, the same script. Are the gradients that the optimizer used the same?

The limit follows from the numbers: sums of n terms in another order differ by about the square root of n roundings. A factor
that all gradients share is told as such; layers whose result depends on who shares a batch are explained, not accused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.model import Confidence, Unchecked
from phalanx.verification.evidence import Evidence, RankEvidence, Sketch, Step
from phalanx.verification.found import Found
from phalanx.verification.replicas import distance

_ROUNDING = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}
_MARGIN = 64.0  # roundings: products and sums within layers, too, are in another order
_SAME_FACTOR = 2e-3
_DRIFTED = 1e-4  # weights that are so far apart give gradients that cannot be compared
_BATCH_LAYERS = ("BatchNorm", "InstanceNorm")


@dataclass(frozen=True)
class _Pair:
    """One parameter's gradient on several ranks and on one."""

    name: str
    several: Sketch
    one: Sketch
    limit: float

    @property
    def factor(self) -> float:
        """By which the one is to be multiplied to give the other."""
        size = self.one[0] ** 2 + self.one[1] ** 2
        return (self.several[0] * self.one[0] + self.several[1] * self.one[1]) / size if size > 0 else math.nan

    def fits(self, factor: float) -> bool:
        """Whether they are the same but for a factor."""
        scaled = (*(factor * value for value in self.one[:2]), abs(factor) * self.one[2])
        return distance(self.several, scaled) <= self.limit


def joined_steps(evidence: Evidence) -> int:
    """How many steps of the first epoch all ranks made: batches after that come in another order."""
    counts = []
    for one in evidence.ranks.values():
        second = [int(epoch["step"]) for epoch in one.all("epoch") if epoch["e"] == 1]
        last = one.steps[-1].step + 1 if one.steps else 0
        counts.append(min([last, *(step for step in second if step > 0)]))
    return min(counts, default=0)


def compare(several: Evidence, alone: Evidence) -> tuple[list[Found], list[Unchecked]]:
    """What differs, and what could not be compared."""
    single = alone.ranks.get(0)
    first = several.ranks.get(0)
    if single is None or first is None or not single.all("given"):
        return [], [_not("the joined batches never reached the script", "a torch DataLoader in the training loop")]
    explained = _explained(several)
    if explained:
        return [], explained
    for optimizer in sorted({step.optimizer for step in single.steps}):
        found, unchecked = _of_optimizer(several, first, single, optimizer)
        if found or unchecked:
            return found, unchecked
    return [], []


def _of_optimizer(
    several: Evidence, first: RankEvidence, single: RankEvidence, optimizer: int
) -> tuple[list[Found], list[Unchecked]]:
    """Step by step, as long as both start each from the same weights."""
    there = first.steps_of(optimizer)
    for number, mine in sorted(single.steps_of(optimizer).items()):
        other = there.get(number)
        if other is None or not mine.is_looked_at or not other.is_looked_at:
            continue
        if number == 0 and (unlike := _unlike_start(first, optimizer, mine, other)) is not None:
            return [], [unlike]
        if any(distance(a, b) > _DRIFTED for a, b in zip(mine.before, other.before, strict=False)):
            break  # other weights give other gradients
        pairs = _pairs(several, first, optimizer, mine, other)
        if not pairs and number == 0:
            return [], [_not("no gradient of a whole parameter could be compared", "parameters that are not sharded")]
        found = _judge(several, pairs, other) or _updates(several, first, optimizer, mine, other)
        if found is not None:
            return [found], []
    return [], []


def _updates(several: Evidence, first: RankEvidence, optimizer: int, mine: Step, other: Step) -> Found | None:
    """Equal gradients and rates move the weights alike; adaptive optimizers turn noise in small gradients into whole steps."""
    held = first.optimizers[optimizer]
    if mine.lr != other.lr or held.cls != "SGD":
        return None  # a rate that is scaled with the number of ranks is a choice
    for place, parameter in enumerate(held.parameters):
        rows = [(step.before[place], step.after[place]) for step in (mine, other)]
        if not parameter.is_whole or any(value is None for row in rows for value in row):
            continue
        moves = [tuple(b - a for a, b in zip(*row, strict=True)) for row in rows]  # type: ignore[arg-type]
        size = max(math.hypot(*move[:2]) for move in moves)
        apart = math.hypot(moves[0][0] - moves[1][0], moves[0][1] - moves[1][1])
        rounding = _MARGIN * _ROUNDING.get(parameter.dtype, 1.2e-7) * (rows[0][1] or (0.0, 0.0, 0.0))[2]
        if size > 0 and apart > 0.01 * size + rounding:
            return Found(
                cause="updates-differ-from-one-rank",
                headline=f"With the same gradients and learning rate step {other.number + 1} moves `{parameter.name}` otherwise on {several.size} "
                f"ranks than on one (moves differ by {apart / size:.0%}).",
                line=other.line,
                pattern="fix-optimizer",
                do="Look for what steps twice, changes weights beside the optimizer, or gives it options that depend on the number of ranks (momentum, weight decay).",
                title="Updates differ from those of one rank",
                confidence=Confidence.LIKELY,
                quotes=(
                    (
                        0,
                        other.line,
                        f"`{parameter.name}` moves by {moves[1][0]:.6g} and {moves[0][0]:.6g} (first projection)",
                    ),
                ),
            )
    return None


def _not(what: str, needs: str) -> Unchecked:
    return Unchecked(f"gradients against one rank: {what}", needs)


def _explained(evidence: Evidence) -> list[Unchecked]:
    """Layers and batches that make one rank and several differ, rightly."""
    found = []
    layers = {
        layer for one in evidence.ranks.values() for model in one.all("model") for layer in model.get("layers", ())
    }
    batch = sorted(layer for layer in layers if any(word in layer for word in _BATCH_LAYERS) and "Sync" not in layer)
    if batch:
        rows = _rows(evidence)
        size = f" of {rows[0]} samples" if rows and len(set(rows)) == 1 else ""
        what = f"{', '.join(batch)} normalises over each rank's own batch{size}, one rank over all of them: the gradients differ rightly"
        found.append(_not(what, "SyncBatchNorm, or a comparison in evaluation mode"))
    if any("Dropout" in layer for layer in layers) and _drops(evidence):
        found.append(_not("dropout draws other masks for the joined batch", "dropout of 0 for the comparison"))
    rows = _rows(evidence)
    if len(set(rows)) > 1:
        what = f"ranks have batches of different sizes ({', '.join(map(str, rows))}): the mean of their means is not the mean of all"
        found.append(_not(what, "batches of one size (`drop_last=True`)"))
    return found


def _drops(evidence: Evidence) -> bool:
    return any(
        one.get("dropout") for rank in evidence.ranks.values() for step in rank.steps[:1] for one in step.all("forward")
    )


def _rows(evidence: Evidence) -> list[int]:
    """Samples in the first batch of each rank."""
    firsts = [next(iter(one.all("batch")), None) for one in evidence.ranks.values()]
    return [len(one["rows"]) for one in firsts if one is not None and one.get("rows")]


def _unlike_start(first: RankEvidence, optimizer: int, mine: Step, other: Step) -> Unchecked | None:
    odd = [place for place, (a, b) in enumerate(zip(mine.before, other.before, strict=False)) if distance(a, b) > 1e-6]
    if len(mine.before) != len(other.before) or len(odd) == len(mine.before):
        return _not(
            "one rank starts from other weights than several", "a seed that does not depend on the number of ranks"
        )
    if odd:
        name = first.optimizers[optimizer].parameters[odd[0]].name
        return _not(
            f"`{name}` starts from other values on one rank", "a seed that does not depend on the number of ranks"
        )
    return None


def _pairs(several: Evidence, first: RankEvidence, optimizer: int, mine: Step, other: Step) -> list[_Pair]:
    """Gradients before clipping, of parameters that are whole on every rank."""
    found = []
    terms = max(1, sum(_rows(several)))
    for place, parameter in enumerate(first.optimizers[optimizer].parameters):
        if not parameter.is_whole or place >= min(len(mine.grad), len(other.grad)):
            continue
        one, all_of_them = mine.grad[place], other.grad[place]
        if one is None or all_of_them is None or (not any(one[:2]) and not any(all_of_them[:2])):
            continue
        rounding = _ROUNDING.get(parameter.dtype, 1.2e-7)
        # Where ranks' own gradients nearly cancel, what is left is small beside what was rounded.
        cancel = _cancellation(several, optimizer, other.number, place, all_of_them)
        limit = _MARGIN * rounding * math.sqrt(terms) * cancel
        limit = max(limit, 1e-5, 10 * distance(mine.before[place], other.before[place]))
        found.append(_Pair(parameter.name, _unclipped(other, all_of_them), _unclipped(mine, one), limit))
    return found


def _cancellation(several: Evidence, optimizer: int, number: int, place: int, total: Sketch) -> float:
    sizes = []
    for one in several.ranks.values():
        step = one.steps_of(optimizer).get(number)
        own = step.own[place] if step is not None and place < len(step.own) else None
        if own is not None:
            sizes.append(math.hypot(*own[:2]))
    left = math.hypot(*total[:2])
    return max(1.0, max(sizes, default=0.0) / left) if left > 0 else 1.0


def _unclipped(step: Step, sketch: Sketch) -> Sketch:
    """A gradient as it was before its norm was cut."""
    for clip in step.all("clip"):
        norm, most = clip.get("norm"), clip.get("most")
        if norm is not None and most and norm > most:
            sketch = tuple(value * norm / most for value in sketch)
    return sketch


def _judge(several: Evidence, pairs: Sequence[_Pair], step: Step) -> Found | None:
    odd = [pair for pair in pairs if not pair.fits(1.0)]
    if not odd:
        return None
    factors = [pair.factor for pair in pairs]
    middle = sorted(factors)[len(factors) // 2]
    if (
        math.isfinite(middle)
        and middle
        and all(pair.fits(middle) or abs(pair.factor / middle - 1) < _SAME_FACTOR for pair in pairs)
    ):
        if abs(middle - 1) < _SAME_FACTOR:
            return None
        return _factor(several, middle, len(pairs), step)
    same = len(pairs) - len(odd)
    worst = odd[0]
    apart = distance(worst.several, worst.one)
    return Found(
        cause="gradients-differ-from-one-rank",
        headline=f"With the same global batch, at step {step.number + 1}, {len(odd)} of {len(pairs)} gradients are not those of one rank, the first `{worst.name}` "
        f"(relative distance {apart:.2g}, rounding explains {worst.limit:.1g}; {same} agree).",
        line=step.line,
        pattern="fix-distributed-api-usage",
        do=f"Look at what computes and reduces `{worst.name}`: a part of the loss that depends on the rank, a reduction over another group, a parameter that DDP ignores, a loss that compares samples within a batch.",
        why="Training on several ranks is then not training with the larger batch.",
        title="Gradients differ from those of one rank",
        confidence=Confidence.LIKELY,
        quotes=tuple((0, step.line, f"`{pair.name}`: norm {pair.several[2]:.6g} on {several.size} ranks, {pair.one[2]:.6g} on one") for pair in odd[:3]),
    )  # fmt: skip


def _factor(several: Evidence, factor: float, count: int, step: Step) -> Found:
    size = several.size
    if abs(factor / size - 1) < 10 * _SAME_FACTOR:
        meaning, pattern = "summed, not averaged", "fix-distributed-api-usage"
        do = f"Divide the reduced gradients by the world size ({size}), or reduce with `ReduceOp.AVG`; where the loss is scaled by the world size, take that out."
    elif abs(factor * size - 1) < 10 * _SAME_FACTOR:
        meaning, pattern = f"divided by {size} once too often", "fix-loss-function"
        do = "Use a loss that is a mean over the batch (DDP averages over ranks), or do not divide by the world size yourself: DDP has done it."
    else:
        meaning, pattern = "a constant factor", "fix-loss-function"
        do = "Look for what scales the loss or the gradients by a number that depends on the number of ranks."
    return Found(
        cause="gradients-scaled-by-ranks",
        headline=f"All {count} gradients of {size} ranks are {factor:.2f} × those of one rank with the same global batch: {meaning}.",
        line=step.line,
        pattern=pattern,
        do=do,
        why="The learning rate is in effect multiplied by this factor, and differs with the number of ranks.",
        title="Gradients are scaled by the number of ranks",
        quotes=((0, step.line, f"factor {factor:.4f} in the gradients of step {step.number + 1}"),),
    )
