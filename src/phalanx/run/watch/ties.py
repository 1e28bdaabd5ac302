"""Breaks ties that numbers cannot: who went aside under a condition on the rank, who left a pass that another is still in, whose partner is odd."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from phalanx.model.ranks import name_ranks
from phalanx.run.watch.dissent import Dissent
from phalanx.run.watch.loops import is_ahead, left_loop
from phalanx.run.watch.partners import circles, has_other_half, is_point_to_point, left_out_half
from phalanx.run.watch.rank_position import RankPosition
from phalanx.sources.rank_conditions import singles_out


def break_tie(positions: Mapping[int, RankPosition], waiting: Iterable[int]) -> Dissent | None:
    """Of ranks that all wait, none of them a minority by its call; None where nothing tells them apart."""
    ranks = {rank: positions[rank] for rank in sorted(waiting)}
    if len(ranks) < 2:
        return None
    return (
        _by_choice(ranks)
        or _by_partner(ranks)
        or _by_other_half(ranks)
        or _by_left_out_half(ranks)
        or _by_pass(ranks)
        or _by_left_loop(ranks)
        or _by_condition(ranks)
    )


def _by_condition(ranks: Mapping[int, RankPosition]) -> Dissent | None:
    """A collective that a condition on the rank led to, while the others are in another one under none.

    Sends and receives stand under such conditions by nature; who is in the other branch of a condition may be the right one.
    """
    if any(is_point_to_point(one.call) for one in ranks.values()):
        return None
    aside = {rank for rank, one in ranks.items() if one.condition.startswith("if ") and singles_out(one.condition)}
    rest = [one for rank, one in ranks.items() if rank not in aside]
    if not aside or len(aside) > len(rest) or any(one.condition for one in rest):
        return None
    stand = "stands" if len(aside) == 1 else "stand"
    text = f"only {name_ranks(aside)} {stand} under a condition on the rank"
    return Dissent(frozenset(aside), text, "aside", {"condition": ranks[min(aside)].condition})


def _by_pass(ranks: Mapping[int, RankPosition]) -> Dissent | None:
    """Ranks in a later pass than the rest, which wait in a call that every pass makes: they left it out."""
    if any(is_point_to_point(one.call) for one in ranks.values()):
        return None
    ahead = {
        rank: told
        for rank, one in ranks.items()
        if (told := next((told for other in ranks.values() if (told := is_ahead(one.passes, other.passes))), ""))
    }
    behind = [rank for rank in ranks if rank not in ahead]
    if (
        not ahead
        or len(ahead) > len(behind)
        or any(_is_aside(ranks[rank]) or not ranks[rank].common for rank in behind)
    ):
        return None
    if any(not is_ahead(ranks[rank].passes, ranks[other].passes) for rank in ahead for other in behind):
        return None
    return _left(sorted(ahead), next(iter(ahead.values())), behind)


def _by_partner(ranks: Mapping[int, RankPosition]) -> Dissent | None:
    """A rank that is in a later pass than one which still waits for its half of an exchange that every pass makes."""
    for rank, one in ranks.items():
        other = ranks.get(one.partner.rank) if one.partner is not None else None
        if other is None or not one.common:
            continue
        if told := is_ahead(other.passes, one.passes):
            return _left([other.rank], told, [rank])
    return None


def _by_other_half(ranks: Mapping[int, RankPosition]) -> Dissent | None:
    """A rank that went on to a collective without its half of an exchange, which stands in another branch of the condition
    under which its partner waits."""
    for rank, one in ranks.items():
        other = ranks.get(one.partner.rank) if one.partner is not None else None
        if one.partner is None or one.frame is None or other is None or is_point_to_point(other.call):
            continue
        if has_other_half(one.frame, one.partner.sends):
            return _left([other.rank], other.call, [rank])
    return None


def _by_left_out_half(ranks: Mapping[int, RankPosition]) -> Dissent | None:
    """Of two ranks that both receive from each other, or both send, the one whose own half may have been passed by."""
    partners = {rank: one.partner for rank, one in ranks.items() if one.partner is not None}
    for circle in circles(partners):
        told = {
            rank: left
            for rank in circle
            if (frame := ranks[rank].frame) is not None and (left := left_out_half(frame, partners[rank].sends))
        }
        if len(circle) == 2 and len(told) == 1:
            ((rank, left),) = told.items()
            half = "receive" if partners[rank].sends else "send"
            text = f"rank {rank} left out its {half}, which stands under {left}"
            return Dissent(frozenset(told), text, "ahead", {"half": half, "half_condition": left})
    return None


def _by_left_loop(ranks: Mapping[int, RankPosition]) -> Dissent | None:
    """Ranks that have left a loop, by what they computed, in which the rest waits in a call that every pass makes."""
    if any(is_point_to_point(one.call) for one in ranks.values()):
        return None
    for first in ranks.values():
        if _is_aside(first) or not first.common:
            continue
        gone = {rank: loop for rank, one in ranks.items() if (loop := left_loop(first.stack, one.stack))}
        rest = [one for rank, one in ranks.items() if rank not in gone]
        if gone and len(gone) <= len(rest) and all(one.frame == first.frame for one in rest):
            have, still = ("has" if len(gone) == 1 else "have"), ("waits" if len(rest) == 1 else "wait")
            waiting = name_ranks(one.rank for one in rest)
            loop = next(iter(gone.values()))
            text = f"{name_ranks(gone)} {have} left the loop at {loop}, in which {waiting} still {still}"
            return Dissent(frozenset(gone), text, "ahead", {"loop": loop, "behind": [one.rank for one in rest]})
    return None


def _is_aside(one: RankPosition) -> bool:
    """Whether a condition that names this rank led it there. Standing under one that names others (`if rank != 1`) is no deviation."""
    return bool(one.condition) and singles_out(one.condition)


def _left(ahead: list[int], told: str, behind: list[int]) -> Dissent:
    verb, still = ("is" if len(ahead) == 1 else "are"), ("waits" if len(behind) == 1 else "wait")
    text = f"{name_ranks(ahead)} {verb} in {told} already and left out what {name_ranks(behind)} still {still} for"
    return Dissent(frozenset(ahead), text, "ahead", {"ahead": told, "behind": behind})


def _by_choice(ranks: Mapping[int, RankPosition]) -> Dissent | None:
    """Of ranks that send and receive, those whose tag or other side a condition on the rank chose."""
    odd = {rank: one.partner for rank, one in ranks.items() if one.partner is not None and one.partner.aside}
    if not odd or len(odd) * 2 > len(ranks):
        return None
    told = [f"rank {rank} {one.doing}, chosen by `{one.aside}`" for rank, one in odd.items()]
    return Dissent(frozenset(odd), "; ".join(told[:3]), "chosen", {"chosen": "; ".join(told[:3])})
