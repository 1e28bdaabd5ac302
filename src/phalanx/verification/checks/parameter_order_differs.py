"""DDP on different ranks holds the same parameters in different orders: gradients of one are added to those of another."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.blame.quorum import odd_ones
from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found


def check(evidence: Evidence) -> Iterator[Found]:
    """DDP compares shapes only, by position."""
    numbers = sorted({m for one in evidence.ranks.values() for m in one.wrapped})
    for number in numbers:
        told = {rank: one.wrapped[number] for rank, one in evidence.ranks.items() if number in one.wrapped}
        orders = {rank: tuple(record["parameters"]) for rank, record in told.items()}
        if len({tuple(sorted(order)) for order in orders.values()}) != 1 or len(set(orders.values())) < 2:
            continue
        odd = tuple(sorted(odd_ones(orders, orders)))
        one, *rest = orders.values()
        other = next(order for order in rest if order != one)
        place = next(index for index, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        yield Found(
            cause="parameter-order-differs",
            headline=f"{name_ranks(odd or orders).capitalize()} gave DDP the same parameters in {'another order' if odd else 'different orders'}: "
            f"parameter {place + 1} is `{one[place]}` on one rank and `{other[place]}` on another, and their gradients are added.",
            line=str(next(iter(told.values()))["line"]),
            pattern="fix-model-construction",
            do="Build the model in the same order on all ranks: no iteration over sets, and nothing that depends on the rank.",
            why="DDP reduces by position and compares shapes only.",
            title="Parameters in different orders",
            culprits=odd,
            explains=("weights-diverge", "initial-weights-differ", "gradients-not-synchronised", "weights-changed-on-some-ranks"),
        )  # fmt: skip
