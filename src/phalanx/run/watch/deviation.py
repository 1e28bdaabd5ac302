"""Finds by the ranks' own journals who left the common course: who left out a call that the others made in the same pass of a loop, or
made one that is not part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from phalanx.blame.quorum import is_minority
from phalanx.model import Frame
from phalanx.model.ranks import name_ranks
from phalanx.run.watch.conditions import is_common, ways_past
from phalanx.run.watch.dissent import Dissent
from phalanx.run.watch.journals import Journal, Made, Passes
from phalanx.sources.rank_conditions import conditions_at

_FEWEST = 2  # passes in which all ranks made a call before it counts as usual

Kind = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A call that some ranks made in one pass and others, who are past it, did not."""

    call: Made
    passes: Passes
    made: frozenset[int]
    missing: frozenset[int]
    usual: bool | None  # whether all ranks made it in such passes before; None where nothing tells


def find_deviation(journals: Mapping[int, Journal], ended: frozenset[int], size: int) -> Dissent | None:
    """None where the journals of all ranks tell nothing, or nobody stands out."""
    if len(journals) < size or size < 2 or any(one.has_joined for one in journals.values()):
        return None
    difference = first_difference(journals, ended)
    if difference is None:
        return find_shorter_run(journals, size)
    skipped = _who_is_odd(difference, size)
    if skipped is None:
        return None
    culprits = difference.missing if skipped else difference.made
    if not is_minority(culprits, range(size), directed=True):
        return None
    return _told(difference, culprits, skipped)


def first_difference(journals: Mapping[int, Journal], ended: frozenset[int]) -> Difference | None:
    """The earliest pass in which ranks did not make the same calls."""
    counts = {rank: _by_pass(one) for rank, one in journals.items()}
    kinds = {kind: call for one in journals.values() for call in reversed(one.calls) if (kind := call.kind)}
    found: list[tuple[tuple[int, ...], int, Difference]] = []
    for kind, call in kinds.items():
        names = {tuple(name for name, _ in passes) for count in counts.values() for passes in count.get(kind, {})}
        for loops in names:
            difference = _difference(kind, loops, journals, counts, ended)
            if difference is not None:
                values = tuple(value for _, value in difference.passes)
                found.append((values, call.frame.line if call.frame is not None else 0, difference))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _difference(
    kind: Kind,
    loops: tuple[str, ...],
    journals: Mapping[int, Journal],
    counts: Mapping[int, Mapping[Kind, Counter[Passes]]],
    ended: frozenset[int],
) -> Difference | None:
    own = {rank: count.get(kind, Counter()) for rank, count in counts.items()}
    passes = sorted({one for count in own.values() for one in count if tuple(name for name, _ in one) == loops})
    first = max(_first_kept(journals[rank], loops) for rank in journals)
    seen: list[Passes] = []
    for one in passes:
        if one < first:
            continue
        most = max(count[one] for count in own.values())
        made = frozenset(rank for rank, count in own.items() if count[one] == most)
        missing = frozenset(
            rank
            for rank, count in own.items()
            if count[one] < most and (rank in ended or _is_past(journals[rank], one))
        )
        if missing:
            call = next(
                call
                for rank in sorted(made)
                for call in reversed(journals[rank].calls)
                if call.kind == kind and call.passes == one
            )
            return Difference(call, one, made, missing, _is_usual(seen, one, journals, loops))
        if len(made) == len(own):
            seen.append(one)
    return None


def _by_pass(journal: Journal) -> dict[Kind, Counter[Passes]]:
    found: dict[Kind, Counter[Passes]] = {}
    for call in journal.calls:
        if call.passes:
            found.setdefault(call.kind, Counter())[call.passes] += 1
    return found


def _first_kept(journal: Journal, loops: tuple[str, ...]) -> Passes:
    """Before the first pass that is wholly in the journal nothing can be compared."""
    if journal.entered <= len(journal.calls):
        return ()
    kept = [call.passes for call in journal.calls if tuple(name for name, _ in call.passes) == loops]
    return next((one for one in kept if one != kept[0]), ()) if kept else ()


def _is_past(journal: Journal, passes: Passes) -> bool:
    """Whether a rank's last call shows that it will not come to this pass any more."""
    loops = tuple(name for name, _ in passes)
    last = journal.calls[-1].passes if journal.calls else ()
    if tuple(name for name, _ in last) == loops or tuple(name for name, _ in last[: len(loops)]) == loops:
        return last[: len(loops)] > passes
    shared = passes[: len(last)]
    if last[: len(shared)] > shared:
        return True
    # out of the inner loop that it had been in
    been = any(
        call.passes[: len(last)] == last and len(call.passes) == len(passes) and call.passes[: len(last)] == shared
        for call in journal.calls
    )
    return last == shared and len(last) < len(passes) and been


def _is_usual(seen: list[Passes], one: Passes, journals: Mapping[int, Journal], loops: tuple[str, ...]) -> bool | None:
    """Whether the call belongs to this pass: all made it in every pass before, or in every so manieth, which this one is."""
    before = sorted(
        {
            call.passes[: len(loops)]
            for journal in journals.values()
            for call in journal.calls
            if tuple(name for name, _ in call.passes[: len(loops)]) == loops and call.passes[: len(loops)] < one
        }
    )
    if len(seen) < _FEWEST:
        return None
    if len(seen) == len(before):
        return True
    numbers = [passes[-1][1] for passes in seen if passes[:-1] == one[:-1]] or [passes[-1][1] for passes in seen]
    if one[-1][1] in {passes[-1][1] for passes in seen}:
        return True  # the same pass of an earlier round of the outer loop
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    if len(steps) == 1:
        return one[-1][1] - numbers[-1] == steps.pop()
    return None


def _who_is_odd(one: Difference, size: int) -> bool | None:
    """True if those that did not make the call left it out, False if those that made it went off the course; None if nothing tells."""
    if len(one.made) != len(one.missing) and len(one.made) + len(one.missing) == size:
        return len(one.missing) < len(one.made)
    if one.usual is not None:
        return one.usual
    if one.call.frame is None:
        return None
    file, line = one.call.frame.file, one.call.frame.line
    on_ranks = [condition for condition in conditions_at(file, line) if condition.is_about_ranks]
    if on_ranks:
        lets_in = {rank: all(each.lets_in(rank) is not False for each in on_ranks) for rank in one.made | one.missing}
        if all(each.singles_out for each in on_ranks) and not any(lets_in[rank] for rank in one.missing):
            return False
        return None if all(each.singles_out for each in on_ranks) else True
    return True if is_common(one.call.frame) else None


def _told(one: Difference, culprits: frozenset[int], skipped: bool) -> Dissent:
    frame = one.call.frame or Frame("", 0, "")
    name = f" `{one.call.name}`" if one.call.name not in (one.call.op, "") and "noname" not in one.call.name else ""
    at = ", ".join(f"{name} {value}" for name, value in one.passes)
    call = f"{one.call.op}{name} at {frame.place}"
    others = name_ranks(one.made if skipped else one.missing)
    fields: dict[str, object] = {"skipped" if skipped else "extra": call, "round": at, "others": others}
    text = f"{name_ranks(culprits)} {'skipped' if skipped else 'called'} {call} in {at}, {others} {'called it' if skipped else 'did not'}"
    if skipped and (way := _way_past(frame, culprits)):
        fields["way"] = way
        text += f"; {way}"
    return Dissent(culprits, text, "skipped" if skipped else "extra", fields)


def _way_past(frame: Frame, culprits: frozenset[int]) -> str:
    """The condition or the early way out by which the accused can have missed the line; empty unless there is one alone."""
    around = [one for one in conditions_at(frame.file, frame.line) if one.is_about_ranks]
    if around:
        return f"the call is under `{around[-1].text}` ({Frame(frame.file, around[-1].line, '').place})"
    ways = [
        (line, condition)
        for line, condition in ways_past(frame.file, frame.line)
        if not condition.is_about_ranks or any(condition.lets_in(rank) is not False for rank in culprits)
    ]
    if len(ways) != 1:
        return ""
    line, condition = ways[0]
    return f"it is skipped at {Frame(frame.file, line, '').place}, under `{condition.text}`"


def find_shorter_run(journals: Mapping[int, Journal], size: int) -> Dissent | None:
    """Where no loop counts its passes: who went on to the next call after fewer calls of one kind than the rest has made, or than all made
    in rounds before."""
    waiting = {rank: call for rank, one in journals.items() if (call := one.waits_in) is not None}
    if len(waiting) < size or len({call.kind for call in waiting.values()}) != 2:
        return None
    for kind in {call.kind for call in waiting.values()}:
        still = frozenset(rank for rank, call in waiting.items() if call.kind == kind)
        gone = frozenset(waiting) - still
        other = next(waiting[rank] for rank in gone)
        runs = {rank: _runs(journals[rank], kind, other.kind) for rank in journals}
        now = {rank: found[-1] for rank, found in runs.items()}
        before = {count for found in runs.values() for count in found[:-1]}
        if not all(0 < now[rank] < now[one] for rank in gone for one in still):
            continue
        if len(before) > 1 or _is_led_aside(other):
            return None  # rounds differ by nature; or a condition on the rank led it to the other call
        usual = before.pop() if before else None
        odd = gone if usual is None or all(now[rank] < usual for rank in gone) else still
        if not is_minority(odd, range(size), directed=True):
            return None
        return _fewer(waiting[min(still)], other, odd, now, odd == gone)
    return None


def _runs(journal: Journal, kind: Kind, until: Kind) -> list[int]:
    """How many calls of a kind were made in each round, which a call of the other kind ends; the last round may not be over."""
    counts = [0]
    for call in journal.calls:
        if call.kind == kind:
            counts[-1] += 1
        elif call.kind == until and call.done:
            counts.append(0)
    return counts


def _is_led_aside(call: Made) -> bool:
    if call.frame is None:
        return True
    return any(one.is_about_ranks and one.singles_out for one in conditions_at(call.frame.file, call.frame.line))


def _fewer(still: Made, other: Made, odd: frozenset[int], now: Mapping[int, int], is_fewer: bool) -> Dissent:
    at = f"{still.op} at {still.frame.place}" if still.frame is not None else still.op
    rest = frozenset(now) - odd
    own, theirs = (", ".join(sorted({str(now[rank]) for rank in ranks})) for ranks in (odd, rest))
    than = "fewer" if is_fewer else "more"
    text = f"{name_ranks(odd)} made {own} calls of {at} in this round, {than} than {name_ranks(rest)} ({theirs})"
    fields = {"counted": f"made {own} calls of {at} in this round, {than} than {name_ranks(rest)} ({theirs})"}
    return Dissent(odd, text, "skipped" if is_fewer else "extra", fields)
