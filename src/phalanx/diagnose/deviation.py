"""Why the accused rank did not come to where the others waited, as far as their ends and stacks tell.

A wait or a lost connection says that a rank is missing, never why. The rank that left with success ran out of work or left out a call;
the rank that stood at another line of the user's code took another path.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from phalanx.diagnose.accuse import OWN_KEY
from phalanx.diagnose.claim import Claim
from phalanx.diagnose.history import History
from phalanx.diagnose.ran_out import ended_well
from phalanx.diagnose.statements import stated_otherwise
from phalanx.knowledge.rule import Claims
from phalanx.model import EventKind

_OF_LOGS = frozenset((EventKind.EXCEPTION, EventKind.TIMEOUT, EventKind.LINE, EventKind.STACK, EventKind.EXIT))
_MEETS = re.compile(
    r"barrier|all_?reduce|all_?gather|gather|scatter|broadcast|reduce|all_to_all|backward\(|state_dict|\.step\(|model\(|net\(|wait\("
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """The cause, a sentence that tells it, and the patterns of the fixes that fit it best."""

    cause: str
    says: str
    patterns: tuple[str, ...]


_CONDITION = ("fix-behavior-logic", "fix-distributed-api-usage")
_UNEVEN = ("fix-batch-size-or-data-partition", "fix-behavior-logic")
_STATED = {
    "world-size-differs": ("fix-communication-configuration", "fix-consistency-between-devices"),
    "master-port-differs": ("fix-communication-configuration", "fix-consistency-between-devices"),
    "model-differs-between-ranks": ("fix-consistency-between-devices", "fix-model-construction"),
    "versions-differ-between-ranks": ("fix-consistency-between-devices", "fix-dependency-version"),
    "uneven-steps": _UNEVEN,
}


def deviation_of(claim: Claim, history: History) -> Deviation | None:
    """Nothing where the claim has a cause of its own, accuses nobody, or nothing tells where the accused was."""
    if not claim.is_communication or not claim.culprits or history.is_supervised:
        return None
    stated = stated_otherwise(history) if claim.is_open else None
    if stated is not None and claim.culprits == {stated.rank} and stated.cause in _STATED:
        said = f"It had stated {stated.own} where all others state {stated.common}."
        return Deviation(stated.cause, said, _STATED[stated.cause])
    if claim.depth is Claims.CAUSE or not claim.is_about_others:
        return None
    awaited = ((OWN_KEY.search(proof.captures.get("key", "")), proof.event.rank) for proof in claim.roots)
    if any(key is not None and rank in claim.culprits and int(key["rank"]) == rank for key, rank in awaited):
        said = "It waits there for its own address itself, so its process took another rank, which another has too."
        return Deviation("duplicate-rank", said, ("fix-communication-configuration", "fix-consistency-between-devices"))
    if any(proof.event.kind not in _OF_LOGS or proof.event.source in ("trace", "watch") for proof in claim.roots):
        return None
    others = history.world.all_ranks - claim.culprits
    return _by_end(claim.culprits, others, history) or _by_place(claim, others, history)


def _by_end(accused: frozenset[int], others: frozenset[int], history: History) -> Deviation | None:
    """The accused had ended well while the others still called."""
    if not ended_well(accused, others, history):
        return None
    steps = {rank.number for rank in history.world.ranks if rank.last_step is not None}
    if steps & accused and steps & others:
        said = "It had ended by then with as many steps as the others: it left out a call on the way, or the others made one more."
        return Deviation("skipped-collective", said, _CONDITION)
    return Deviation("early-exit", "It had ended by then, without an error.", ("fix-behavior-logic", *_UNEVEN))


def _by_place(claim: Claim, others: frozenset[int], history: History) -> Deviation | None:
    """The accused stood at another line of the user's code than most."""
    accused, stacks = claim.culprits, history.stacks
    usual = Counter(stacks[rank] for rank in others if rank in stacks).most_common(1)
    own = {stacks[rank] for rank in accused if rank in stacks}
    if not usual or len(own) != 1 or usual[0][0] in own:
        return None
    ours, theirs = usual[0][0], own.pop()
    there, here = theirs[-1], ours[-1]
    if (there.file, there.line) == (here.file, here.line):
        said = "It made the same call from another place of the script, so in another order."
        return Deviation("reordered-collectives", said, _CONDITION)
    if not _MEETS.search(there.source):
        said = f"It was busy at {there.place} all that time."
        return Deviation("rank-stuck-in-user-code", said, ("fix-behavior-logic", "fix-communication-configuration"))
    if "new_group(" in here.source:
        said = "It did not create a group that the others create; all ranks must call `new_group`, its members or not."
        return Deviation("new-group-not-called-by-all", said, _CONDITION)
    said = "It made a call there that the others do not make at that point."
    return Deviation("rank-conditional-collective", said, _CONDITION)
