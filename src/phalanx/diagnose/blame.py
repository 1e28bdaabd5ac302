"""Tells culprits from victims. A rank is only accused on evidence; when none stands out, nobody is."""

from __future__ import annotations

import re
import signal
from collections import Counter

from phalanx.diagnose.claim import Claim
from phalanx.diagnose.doubt import CRASHES, are_words_cut_off, crashed_ranks, may_be_the_same, were_killed
from phalanx.diagnose.elsewhere import at_another_line, behind_in_sequence, behind_in_steps
from phalanx.diagnose.failed_calls import failed_aside, in_another_call, is_minority, left_out_half, under_a_condition
from phalanx.diagnose.history import History
from phalanx.diagnose.ports import is_held_by_a_peer
from phalanx.diagnose.stage import stage_of
from phalanx.diagnose.statements import stated_otherwise
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import EventKind, Role, Stage
from phalanx.model.ranks import LARGEST_WORLD
from phalanx.sources.readers.tracebacks import TRUNCATED

OWN_KEY = re.compile(r"//(?:cpu|cuda)//\d+/(?P<rank>\d+)$")  # where a rank of a group leaves its address
_ASIDE = re.compile(r"eval|valid|test|save|checkpoint|export|metric|report|final|predict", re.I)  # functions
_COORDINATOR = "coordinator/cluster_coordinator.py"  # of TensorFlow's parameter servers
_UNREACHED = re.compile(r"client socket has timed out after|failed to connect|Connection refused|connect\(\) timed out")


def assign_blame(claims: list[Claim], history: History) -> None:
    """Set culprits and victims of every claim."""
    world = history.world
    # only the supervisor knows for certain who else has left, and when
    sufferers = _only_victims(claims) if history.is_supervised else frozenset()
    for claim in claims:
        culprits = _culprits(claim, history, sufferers)
        if not culprits and claim.is_communication and claim.blame is not Blame.NETWORK:
            culprits = _never_met(claim, history) or _by_statement(history)
        claim.culprits = culprits if not (culprits and is_held_by_a_peer(claim, history)) else frozenset()
        if claim.culprits:
            claim.victims = frozenset(world.all_ranks - claim.culprits)
        else:
            claim.victims = frozenset(
                proof.event.rank
                for proof in claim.proofs
                if proof.role is Role.CASCADE and proof.event.rank is not None
            )


def _only_victims(claims: list[Claim]) -> frozenset[int]:
    """Ranks that say nothing of their end but that others were gone."""
    suffered = {rank for claim in claims if claim.depth is Claims.VICTIM for rank in claim.printers}
    return frozenset(suffered.difference(*(claim.printers for claim in claims if claim.depth is not Claims.VICTIM)))


def _culprits(claim: Claim, history: History, sufferers: frozenset[int]) -> frozenset[int]:
    everyone = history.world.all_ranks
    printers = claim.printers
    if claim.blame is Blame.NETWORK:
        return frozenset()
    if claim.is_about_others and (odd := left_behind(printers, history)) and odd <= failed_aside(history):
        return odd  # they called what most do not, and most had ended well
    if claim.blame is Blame.NAMED and (named := _named(claim)):
        if claim.depth is Claims.VICTIM and _called_alone(printers, history):
            return frozenset()  # who is named may have ended, with nothing left to do
        return _fit_to_accuse(named, history)
    if len(everyone) < 2:
        return frozenset()
    if claim.is_communication and (odd := left_out_half(history)):
        return odd
    if claim.depth is Claims.VICTIM or claim.blame is Blame.SILENT:
        return missing_ranks(printers, history, sufferers)
    if claim.symptom in CRASHES and printers <= (crashed := crashed_ranks(history)) and len(crashed) == 1:
        return crashed  # native code says what it found, and not in which rank
    if claim.blame in (Blame.NOBODY, Blame.NAMED):
        told = [proof.event.data for proof in claim.roots]
        if any(data.get("settled") and data.get("reason") != "nobody" for data in told):
            return frozenset()  # the watch knew where all stood, and for whom they waited, and found nobody
        if not claim.is_communication:
            return printers if claim.ended_its_rank and is_minority(printers, everyone) else frozenset()
        if any(proof.event.source == "trace" for proof in claim.roots):
            # Who went on from a call that the others are in is none that they wait for.
            return _by_traces(claim, history)
        # Stacks of a watched job were taken at one moment, so that a rank elsewhere took another path.
        elsewhere = at_another_line(everyone, history) if history.is_supervised else frozenset()
        gone = _gone(printers, history, differs="-different-" in claim.cause)
        odd = _by_traces(claim, history) or in_another_call(claim, history) or gone or elsewhere
        return odd or under_a_condition(history)
    if not printers or _is_partly_unknown(claim, history) or _is_told_for_workers(claim):
        return frozenset()
    if history.breaks_off and all(proof.event.data.get("type") == TRUNCATED for proof in claim.roots):
        return frozenset()  # the first of those that failed, and nobody knows of how many
    if not history.is_supervised and are_words_cut_off(claim, history):
        return frozenset()
    spoke = _spoke_otherwise(claim, history)
    if history.lacks_lines and not everyone - printers <= spoke and not were_killed(claim):
        return frozenset()  # nor is it known what was cut off
    if claim.blame is Blame.ODD:
        return _fewer(printers, everyone - printers)
    if printers >= everyone:
        return in_another_call(claim, history) if claim.is_communication else frozenset()
    if history.is_supervised and all(proof.event.kind is EventKind.EXIT for proof in claim.roots):
        return printers  # the supervisor knows whom it ended itself: these went by themselves
    cut_short = everyone - printers - _spoke_otherwise(claim, history)
    is_first_of_spawned = (
        printers == {0} and history.was_spawned
    )  # whose parent tells of one process, and ends the others
    if (len(printers) > 1 or is_first_of_spawned) and printers | cut_short >= everyone:
        return frozenset()  # several ranks alike, and the rest were ended before they came that far
    by_words = all(proof.event.kind is not EventKind.EXIT for proof in claim.roots)
    if by_words and _has_lost_words(everyone - printers, history):
        return frozenset()  # the log begins after others had failed, perhaps alike
    if claim.rule is not None and claim.rule.distributed is False and everyone - printers <= _still_meeting(history):
        return frozenset()  # a fault of the script on all ranks, of which the others had not come to that line
    cut = (event for event in history.exceptions if event.data.get("type") == TRUNCATED)
    if any(event.rank in everyone - printers and may_be_the_same(event, claim) for event in cut):
        return frozenset()
    return printers


def _has_lost_words(others: frozenset[int], history: History) -> bool:
    """Some of them ended with the status of an exception in a file that has no line of theirs: its beginning was cut off."""
    if history.is_supervised or len(history.seen.files) != 1:
        return False
    file = history.seen.files[0]
    failed = {event.rank for event in history.own_deaths if event.data["code"] == 1}
    return any(rank in failed and rank not in file.ranks for rank in others)


def _is_told_for_workers(claim: Claim) -> bool:
    """A coordinator raises what the workers' own steps had raised."""
    return any(frame.path.endswith(_COORDINATOR) for proof in claim.roots for frame in proof.event.frames)


def _never_met(claim: Claim, history: History) -> frozenset[int]:
    """Who alone did not come to the meeting: its address is what all wait for, or it is known not to have reached the store."""
    everyone = history.world.all_ranks
    keys = [match["rank"] for proof in claim.roots if (match := OWN_KEY.search(proof.captures.get("key", "")))]
    awaited = frozenset(int(rank) for rank in keys)
    if len(awaited) == 1 and len(claim.printers) > 1 and awaited <= everyone and is_minority(awaited, everyone):
        return awaited
    missing = {
        int(c["size"]) - int(c["joined"]) for p in claim.roots if (c := p.captures).get("joined") and c.get("size")
    }
    apart = frozenset(
        event.rank for event in history.exceptions if event.rank is not None and _UNREACHED.search(event.text)
    )
    return apart if missing == {len(apart)} and is_minority(apart, everyone) else frozenset()


def _by_statement(history: History) -> frozenset[int]:
    """The rank that had stated another world, model or amount of data than all others."""
    stated = stated_otherwise(history)
    return frozenset() if stated is None else frozenset((stated.rank,))


def _still_meeting(history: History) -> frozenset[int]:
    """Ranks that failed while the group was being set up."""
    stages = ((event.rank, stage_of(event, history.file_of(event), False)) for event in history.exceptions)
    return frozenset(rank for rank, stage in stages if rank is not None and stage is Stage.COMM)


def _is_partly_unknown(claim: Claim, history: History) -> bool:
    """Some of the evidence has no rank, and it is not the launcher's own words in a file that marks its ranks."""
    if any(proof.event.kind is EventKind.EXIT for proof in claim.roots):
        return False
    named_in = {proof.event.file for proof in claim.roots if proof.event.rank is not None}
    for proof in claim.roots:
        file = history.file_of(proof.event)
        if proof.event.rank is None and proof.event.file in named_in:
            continue
        if proof.event.rank is None and (file is None or not any(rank is not None for rank in file.ranks)):
            return True
    return False


def _fewer(one: frozenset[int], other: frozenset[int]) -> frozenset[int]:
    if len(one) == len(other):
        return frozenset()  # a tie: either may be right
    return min(one, other, key=len)


def _gone(printers: frozenset[int], history: History, *, differs: bool = False) -> frozenset[int]:
    """Ranks that died, left with success or never left a trace, while others could not reach a rank."""
    everyone = history.world.all_ranks
    # Who gets more than it asked for aborts: of two ranks, either may have asked for the wrong size.
    no_proof = (0, 1, -signal.SIGABRT) if differs and len(everyone) == 2 else (0, 1)
    died = {event.rank for event in history.own_deaths if event.data["code"] not in no_proof and event.rank is not None}
    left = {rank for rank, code in history.exit_codes.items() if code == 0}
    absent = everyone - history.world.seen if not history.is_cut_out else frozenset()
    for suspects in (died, left, absent):
        found = frozenset(suspects) - printers
        if found and is_minority(found, everyone):
            return found
    return frozenset()


def _named(claim: Claim) -> frozenset[int]:
    found: set[int] = set()
    for proof in claim.roots:
        text = proof.captures.get("culprit", "")
        for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", text):
            found.update(range(int(first), min(int(last or first) + 1, LARGEST_WORLD)))
        by_fact = proof.event.fact.ranks if proof.event.fact is not None else ()
        found.update(rank for rank in (*by_fact, *proof.event.data.get("missing", ())) if rank < LARGEST_WORLD)
    return frozenset(found)


def _by_traces(claim: Claim, history: History) -> frozenset[int]:
    """Whom the collective traces accuse: they know what each rank called, where a log only says that ranks did not meet.

    Where calls did not fit, one rank without a trace is odd if all others fit; of several each may have died of another's call.
    """
    told = [event for event in history.seen.events if event.source == "trace"]
    accused = frozenset(rank for event in told for rank in event.data.get("missing", ()))
    by_absence = any(event.fact is not None and event.fact.id == "trace.missing" for event in told)
    return frozenset() if by_absence and len(accused) > 1 and "-different-" in claim.cause else accused


def _fit_to_accuse(named: frozenset[int], history: History) -> frozenset[int]:
    """Who of the named ranks to accuse. Where ranks wait for different things, every one of them is missed by some:
    then those are odd that the fewest are missed together with."""
    everyone = history.world.all_ranks
    if len(everyone) < 2:  # nothing but the report tells of ranks: all up to the highest it names, and whoever wrote it
        everyone = named | frozenset(range(max(max(named), len(named)) + 1))
    if is_minority(named & everyone, everyone):
        return named & everyone
    sets = [frozenset(ranks) for event in history.seen.events for ranks in event.data.get("sets", ())]
    smallest = min(sets, key=len, default=frozenset())
    if not is_minority(smallest, everyone) or any(len(other) == len(smallest) and other != smallest for other in sets):
        return frozenset()
    return smallest


def missing_ranks(waiting: frozenset[int], history: History, sufferers: frozenset[int] = frozenset()) -> frozenset[int]:
    """Who is to blame that `waiting` ranks wait or lost a peer: those that reports name, died, are behind, or are silent.
    An exception of `sufferers`, who only say that a peer was gone, is no death of their own.

    A majority is never accused: then the few that spoke are more likely the odd ones, or the rest was cut off.
    """
    everyone = history.world.all_ranks
    named = _named_in_stalls(history)
    if named and (accused := _fit_to_accuse(named, history)):
        return accused
    own = [event for event in history.own_deaths if event.data["code"] != 1 or event.rank not in sufferers]
    died = frozenset(event.rank for event in own if event.rank is not None) - waiting
    if died and is_minority(died, everyone):
        return died
    if _called_alone(waiting, history):
        return frozenset()
    gone = _gone(waiting, history)
    if gone:
        return gone
    elsewhere = at_another_line(waiting, history)
    if elsewhere and (not history.lacks_lines or history.places.keys() >= everyone):
        return elsewhere
    behind = behind_in_sequence(history)
    if behind and is_minority(behind, everyone):
        return behind
    if odd := left_behind(waiting, history):
        return odd
    silent = everyone - waiting
    if not history.is_cut_out and waiting and silent and is_minority(silent, everyone) and len(waiting) >= len(silent):
        return frozenset(silent)
    return behind_in_steps(history) if waiting >= everyone or not waiting else frozenset()


def _called_alone(waiting: frozenset[int], history: History) -> bool:
    """Half of the ranks or fewer lost the others in what a script does beside its steps (evaluating, saving), after all had come equally far:
    the others may just as well have ended, with nothing left to do."""
    others = history.world.all_ranks - waiting
    if not waiting or len(waiting) > len(others) or any(history.exit_codes.get(rank) for rank in others):
        return False
    frames = [frame for rank in waiting for frame in history.stacks.get(rank, ())]
    if not any(_ASIDE.search(frame.function) for frame in frames):
        return False
    positions = {
        rank: entry.position for file in history.seen.files for rank, entry in file.ranks.items() if entry.position
    }
    return positions.keys() >= history.world.all_ranks and len(set(positions.values())) == 1


def left_behind(waiting: frozenset[int], history: History) -> frozenset[int]:
    """These ranks, if they are few and all others had ended well: they still called when most were through, so they made more calls or had more data."""
    everyone = history.world.all_ranks
    finished = {rank for rank, code in history.exit_codes.items() if code == 0}
    return waiting if finished >= everyone - waiting and is_minority(waiting, everyone) else frozenset()


def _named_in_stalls(history: History) -> frozenset[int]:
    """What stall reports name: a rank missing from the last report, not one that came late and went on."""
    reports = [event for event in history.seen.events if event.kind is EventKind.STALL and event.data.get("missing")]
    reports = [event for event in reports if not history.went_on_after(event)]
    if not reports:
        return frozenset()
    counts = Counter(rank for event in reports for rank in event.data["missing"])
    most = max(counts.values())
    return frozenset(rank for rank, count in counts.items() if count == most)


def _spoke_otherwise(claim: Claim, history: History) -> frozenset[int]:
    """Ranks with words of their own about the end: exceptions, time-outs, a good end."""
    own = {event.rank for event in history.exceptions if event.rank is not None}
    own |= {event.rank for event in history.seen.events if event.kind is EventKind.TIMEOUT and event.rank is not None}
    own |= {rank.number for rank in history.world.ranks if rank.finished}
    own |= {rank for rank, code in history.exit_codes.items() if code == 0}
    return frozenset(rank for rank in own if rank is not None) - claim.printers
