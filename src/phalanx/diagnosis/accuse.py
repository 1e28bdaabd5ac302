"""Asks the blame engine about every claim: says what the claim is about, who shows it, and which ranks its evidence names."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from phalanx.blame import NOBODY, About, Accusation, Coverage, GroupCall, RankState, RankTable, Words, accuse
from phalanx.blame.quorum import is_minority
from phalanx.diagnosis.claim import WORDLESS, Claim
from phalanx.diagnosis.coverage import coverage_of_absence, coverage_of_words
from phalanx.diagnosis.groups import members_of_groups
from phalanx.diagnosis.history import History
from phalanx.diagnosis.missing_words import are_words_missing, crashed_ranks, may_be_the_same
from phalanx.diagnosis.ports import is_held_by_a_peer
from phalanx.diagnosis.rank_states import only_victims, rank_states
from phalanx.diagnosis.stage import stage_of
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Event, EventKind, Role, Stage
from phalanx.model.facts.stall import is_beyond_recorders
from phalanx.model.ranks import LARGEST_WORLD
from phalanx.sources.readers.tracebacks import TRUNCATED

_ANSWERS = re.compile(r"dump signal (?:due to|from another rank)")
OWN_KEY = re.compile(r"//(?:cpu|cuda)//\d+/(?P<rank>\d+)$")  # where a rank of a group leaves its address
_CRASHES = ("fail.memory-issue", "fail.segmentation-fault")  # symptoms of native code that breaks
_COORDINATOR = "coordinator/cluster_coordinator.py"  # of TensorFlow's parameter servers
UNREACHED = re.compile(r"client socket has timed out after|failed to connect|Connection refused|connect\(\) timed out")


def accuse_all(claims: Sequence[Claim], history: History) -> list[Claim]:
    """The claims, each with its culprits and victims."""
    victims = only_victims((claim.depth is Claims.VICTIM, _speakers(claim)) for claim in claims)
    states = rank_states(history, victims)
    coverage = coverage_of_absence(history)
    return [_accused(claim, history, states, coverage) for claim in claims]


def _accused(claim: Claim, history: History, states: dict[int, RankState], coverage: Coverage) -> Claim:
    table = table_of(claim, history, states, coverage)
    found = accuse(table) if len(table.everyone) > 1 or table.named else NOBODY
    return with_accusation(claim, found, history)


def _speakers(claim: Claim) -> frozenset[int]:
    """The ranks that say it of themselves: one that answers another's signal to dump need not have waited."""
    own = (proof.event for proof in claim.roots if _ANSWERS.search(proof.event.text) is None)
    return frozenset(event.rank for event in own if event.rank is not None)


def with_accusation(claim: Claim, found: Accusation, history: History) -> Claim:
    """The claim with its culprits, and the ranks that suffered."""
    suffered = frozenset(
        proof.event.rank for proof in claim.proofs if proof.role is Role.CASCADE and proof.event.rank is not None
    )
    victims = history.world.all_ranks - found.ranks if found.ranks else suffered
    return replace(claim, accusation=found, victims=frozenset(victims))


def table_of(claim: Claim, history: History, states: dict[int, RankState], coverage: Coverage) -> RankTable:
    """The table in which the claim is judged."""
    named = _named(claim, history)
    shown = _shown_by(claim, history)
    about = _about(claim, history, named)
    others = history.world.all_ranks - shown
    cut = {
        event.rank
        for event in history.exceptions
        if event.data.get("type") == TRUNCATED and event.rank in others and may_be_the_same(event, claim)
    }
    meeting = _still_meeting(history) if claim.rule is not None and claim.rule.distributed is False else frozenset()
    is_shared = bool(others) and (others <= meeting or (shown == {0} and history.was_spawned))
    rows = dict(states) if about is not About.CALLS else _with_short_calls(claim, states)
    if about is About.OWN:
        for rank in cut & rows.keys():
            rows[rank] = replace(rows[rank], words=Words.CUT)
        for rank in meeting & rows.keys() if is_shared else ():
            rows[rank] = replace(rows[rank], words=Words.NONE)
    return RankTable(
        rows,
        about,
        shown,
        history.world.all_ranks,
        coverage_of_words(claim, history) if about is About.OWN else coverage,
        named,
        members_of_groups(history.seen.events),
        calls_differ="-different-" in claim.cause,
        one_moment=history.is_supervised,
        is_ending=history.is_supervised and all(proof.event.kind is EventKind.EXIT for proof in claim.roots),
        is_shared=is_shared,
        is_unattributed=_is_unattributed(claim, history),
    )


def _with_short_calls(claim: Claim, states: dict[int, RankState]) -> dict[int, RankState]:
    """A rank that died of too long a message had asked for the smaller of two sizes that others are known to have asked for."""
    sizes = {call.sizes for state in states.values() for call in state.calls if not call.group and call.sizes}
    by_length = sorted(sizes, key=_elements)
    if len(by_length) != 2 or _elements(by_length[0]) == _elements(by_length[1]):
        return dict(states)
    rows = dict(states)
    for proof in claim.roots:
        got, want = (proof.captures.get(name, "") for name in ("got", "want"))
        row = rows.get(-1 if proof.event.rank is None else proof.event.rank)
        if row is not None and not row.calls and got.isdecimal() and want.isdecimal() and int(got) > int(want):
            rows[row.rank] = replace(row, calls=(GroupCall(sizes=by_length[0]),))
    return rows


def _elements(shape: str) -> int:
    return math.prod(int(size) for size in re.findall(r"\d+", shape))


def _about(claim: Claim, history: History, named: tuple[frozenset[int], ...]) -> About:
    if claim.blame is Blame.NETWORK or _is_told_for_workers(claim) or is_held_by_a_peer(claim, history):
        return About.NOBODY
    if claim.roots and all(_is_undecided(proof.event) for proof in claim.roots):
        return About.NOBODY  # the watch asked the same strategies, and saw more than stacks and recorders show
    if (awaited := _awaited(claim)) and not awaited & history.world.all_ranks:
        return About.NOBODY  # the address of a rank that was never started: those that were are not to blame
    if claim.blame is Blame.NAMED and named and claim.depth is not Claims.VICTIM:
        return About.NAMED
    if claim.depth is Claims.VICTIM or claim.blame is Blame.SILENT:
        return About.PEERS
    if claim.blame is Blame.ODD:
        return About.NAMED
    if claim.blame in (Blame.NOBODY, Blame.NAMED):
        if any(is_beyond_recorders(proof.event.fact, but="exchange") for proof in claim.roots):
            return About.NOBODY  # the watch knew where all stood, and for whom they waited, and found nobody
        if claim.is_communication:
            return About.NAMED if any(proof.event.source == "trace" for proof in claim.roots) else About.CALLS
        own = claim.ended_its_rank and is_minority(claim.printers, history.world.all_ranks, directed=True)
        return About.OWN if own else About.NOBODY
    if claim.is_communication and claim.printers >= history.world.all_ranks:
        return About.CALLS
    return About.OWN


def _is_undecided(event: Event) -> bool:
    """A stall at which the watch looked at every rank, and accused none."""
    return event.fact is not None and not event.fact.ranks and bool(event.fact.fields.get("undecided"))


def _shown_by(claim: Claim, history: History) -> frozenset[int]:
    """The ranks in whose evidence it shows; of a crash whose words do not say whose they are, the one rank that crashed."""
    printers = claim.printers
    if claim.symptom in _CRASHES and printers <= (crashed := crashed_ranks(history)) and len(crashed) == 1:
        return crashed
    return printers


def _named(claim: Claim, history: History) -> tuple[frozenset[int], ...]:
    """Whom the evidence of the claim names, or, of a claim about peers, the stall reports of the job."""
    found: set[int] = set()
    if claim.blame is Blame.ODD:
        return (claim.printers,)
    if claim.blame is Blame.NAMED:
        for proof in claim.roots:
            if claim.depth is Claims.VICTIM and proof.captures.get("culprit") == str(proof.event.rank):
                continue  # who says that it was taken for dead lives
            for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", proof.captures.get("culprit", "")):
                found.update(range(int(first), min(int(last or first) + 1, LARGEST_WORLD)))
            by_fact = proof.event.fact.ranks if proof.event.fact is not None else ()
            by_fact += history.ranks_on(proof.captures.get("node"))
            found.update(rank for rank in (*by_fact, *proof.event.data.get("missing", ())) if rank < LARGEST_WORLD)
    if not found and (claim.depth is Claims.VICTIM or claim.blame is Blame.SILENT):
        found.update(_named_in_stalls(history))
    if not found and claim.is_communication:
        found.update(_by_traces(claim, history) or _never_met(claim, history))
    if not found:
        return ()
    sets = (frozenset(ranks) for event in history.seen.events for ranks in event.data.get("sets", ()))
    return (frozenset(found), *(ranks for ranks in sets if ranks))


def _named_in_stalls(history: History) -> frozenset[int]:
    """What stall reports name: a rank missing from the last report, not one that came late and went on."""
    reports = [event for event in history.seen.events if event.kind is EventKind.STALL and event.data.get("missing")]
    reports = [event for event in reports if not history.went_on_after(event)]
    counts = Counter(rank for event in reports for rank in event.data["missing"])
    most = max(counts.values(), default=0)
    return frozenset(rank for rank, count in counts.items() if count == most)


def _by_traces(claim: Claim, history: History) -> frozenset[int]:
    """Whom the collective traces accuse. Where calls did not fit, one rank without a trace is odd if all others fit;
    of several each may have died of another's call."""
    told = [event for event in history.seen.events if event.source == "trace"]
    accused = frozenset(rank for event in told for rank in event.data.get("missing", ()))
    by_absence = any(event.fact is not None and event.fact.id == "trace.missing" for event in told)
    return frozenset() if by_absence and len(accused) > 1 and "-different-" in claim.cause else accused


def _never_met(claim: Claim, history: History) -> frozenset[int]:
    """Who alone did not reach the rendezvous: its address is what all wait for, or it could not connect to the store."""
    awaited = _awaited(claim)
    if len(awaited) == 1 and len(claim.printers) > 1 and awaited <= history.world.all_ranks:
        return awaited
    missing = {
        int(c["size"]) - int(c["joined"]) for p in claim.roots if (c := p.captures).get("joined") and c.get("size")
    }
    unseen = history.world.all_ranks - history.world.seen
    if missing == {len(unseen)}:
        return unseen  # as many did not join as nothing is seen of
    apart = frozenset(
        event.rank for event in history.exceptions if event.rank is not None and UNREACHED.search(event.text)
    )
    return apart if missing == {len(apart)} else frozenset()


def _awaited(claim: Claim) -> frozenset[int]:
    """The ranks whose addresses were waited for in the store, by the keys under which they would have left them."""
    keys = (OWN_KEY.search(proof.captures.get("key", "")) for proof in claim.roots)
    return frozenset(int(match["rank"]) for match in keys if match is not None)


def _is_told_for_workers(claim: Claim) -> bool:
    """A coordinator raises what the workers' own steps had raised."""
    return any(frame.path.endswith(_COORDINATOR) for proof in claim.roots for frame in proof.event.frames)


def _still_meeting(history: History) -> frozenset[int]:
    """Ranks that failed while the group was being set up."""
    stages = ((event.rank, stage_of(event, history.file_of(event), False)) for event in history.exceptions)
    return frozenset(rank for rank, stage in stages if rank is not None and stage is Stage.COMM)


def _is_unattributed(claim: Claim, history: History) -> bool:
    """Some of the evidence has no rank, and it is not the launcher's own words in a file that marks its ranks; or an
    exit's reason was said by nobody known."""
    if any(proof.event.kind is EventKind.EXIT for proof in claim.roots):
        return claim.cause == WORDLESS and not history.is_supervised and are_words_missing(claim, history)
    named_in = {proof.event.file for proof in claim.roots if proof.event.rank is not None}
    for proof in claim.roots:
        file = history.file_of(proof.event)
        if proof.event.rank is not None or proof.event.file in named_in:
            continue
        if file is None or not any(rank is not None for rank in file.ranks):
            return True
    return False
