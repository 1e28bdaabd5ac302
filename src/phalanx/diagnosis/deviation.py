"""Why the accused rank did not come to where the others waited, as far as their ends, stacks and words tell.

A wait or a lost connection says that a rank is missing, never why. Each function below knows one reason and returns it as a fact;
the rule for that fact has the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from phalanx.diagnosis.accuse import OWN_KEY, UNREACHED
from phalanx.diagnosis.claim import Claim, Proof, is_about_peers
from phalanx.diagnosis.history import History
from phalanx.diagnosis.origin import symptom_of
from phalanx.diagnosis.ran_out import MEETS, ended_well, ran_out_of_batches
from phalanx.diagnosis.statements import stated_otherwise
from phalanx.knowledge import Rule
from phalanx.knowledge.rule import Claims
from phalanx.model import EventKind, Role
from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact
from phalanx.sources.facts import fact_event

_OF_LOGS = frozenset((EventKind.EXCEPTION, EventKind.TIMEOUT, EventKind.LINE, EventKind.STACK, EventKind.EXIT))
_ADDRESS = re.compile(r"connect to \(?\[?(?P<host>[^\s,()\]]+)\]?(?:, |:)(?P<port>\d+)")


def with_deviation(claim: Claim, history: History, rules: Sequence[Rule]) -> Claim:
    """The claim told by the rule for what the accused did instead, where that is known."""
    if not claim.is_communication or not claim.culprits or not claim.is_open:
        return claim
    fact = next((fact for find in _REASONS if (fact := find(claim, history)) is not None), None)
    rule = next(
        (rule for rule in rules for spec in rule.evidence if fact and spec.fact and spec.fact.id == fact.id), None
    )
    if fact is None or rule is None:
        return claim
    shown = fact_event(fact, claim.roots[0].event.file if claim.roots else "")
    return claim.explained_by(rule, Proof(shown, Role.SUPPORTS, fact.texts()))


def _fact(kind: str, claim: Claim, **fields: object) -> Fact:
    return make_fact(f"deviation.{kind}", fields, ranks=tuple(sorted(claim.culprits)), source="source")


def _states_otherwise(claim: Claim, history: History) -> Fact | None:
    stated = None if history.is_supervised else stated_otherwise(history)
    if stated is None or claim.culprits != {stated.rank} or not stated.what:
        return None
    return _fact("states-otherwise", claim, cause=stated.cause, what=stated.what, own=stated.own, common=stated.common)


def _missed_rendezvous(claim: Claim, history: History) -> Fact | None:
    """As many came as the store counted: the accused called another place, or was never started."""
    told = next((proof.captures for proof in claim.roots if {"joined", "size"} <= proof.captures.keys()), None)
    if told is None:
        return None
    fields = {name: int(told[name]) for name in ("joined", "size", "seconds") if name in told}
    tried = [event for event in history.exceptions if event.rank in claim.culprits and UNREACHED.search(event.text)]
    address = next((match for event in tried if (match := _ADDRESS.search(event.text))), None)
    if address is not None:
        fields.pop("seconds", None)
        return _fact("other-store", claim, address=f"{address['host']}:{address['port']}", **fields)
    return _fact("never-started", claim, **fields) if not claim.culprits & history.world.seen else None


def _same_rank_twice(claim: Claim, history: History) -> Fact | None:
    awaited = ((OWN_KEY.search(proof.captures.get("key", "")), proof.event.rank) for proof in claim.roots)
    if any(key is not None and rank in claim.culprits and int(key["rank"]) == rank for key, rank in awaited):
        return _fact("same-rank-twice", claim)
    return None


def _is_settled(claim: Claim, history: History) -> bool:
    """The rule knows the cause, or a watch or a trace saw more than ends and lines can tell."""
    if history.is_supervised or claim.depth is Claims.CAUSE or not claim.is_about_others:
        return True
    return any(proof.event.kind not in _OF_LOGS or proof.event.source in ("trace", "watch") for proof in claim.roots)


def _left_early(claim: Claim, history: History) -> Fact | None:
    """The accused had ended well while the others still called."""
    others = history.world.all_ranks - claim.culprits
    if _is_settled(claim, history) or not ended_well(claim.culprits, others, history):
        return None
    steps = {rank.number for rank in history.world.ranks if rank.last_step is not None}
    as_many = bool(steps & claim.culprits and steps & others)
    return _fact("left-early", claim, as_many_steps=as_many, cause="skipped-collective" if as_many else "early-exit")


def _elsewhere(claim: Claim, history: History) -> Fact | None:
    """The accused stood at another line of the user's code than most."""
    stacks = history.stacks
    others = history.world.all_ranks - claim.culprits
    usual = Counter(stacks[rank] for rank in others if rank in stacks).most_common(1)
    own = {stacks[rank] for rank in claim.culprits if rank in stacks}
    if _is_settled(claim, history) or not usual or len(own) != 1 or usual[0][0] in own:
        return None
    raised = [event for event in history.exceptions if event.rank in claim.culprits - claim.printers]
    if any(not is_about_peers(symptom_of(event, None)) for event in raised):
        return None  # it raised an exception of its own there
    there, here = own.pop()[-1], usual[0][0][-1]
    cause = "rank-conditional-collective"
    more: dict[str, object] = {}
    if (there.file, there.line) == (here.file, here.line):
        cause, more = "reordered-collectives", {"order": True}
    elif not MEETS.search(there.source):
        cause, more = "rank-stuck-in-user-code", {"busy_at": there.place}
    elif "new_group(" in here.source:
        cause, more = "new-group-not-called-by-all", {"new_group": True}
    return _fact("elsewhere", claim, place=there.place, others_at=here.place, cause=cause, **more)


_REASONS: tuple[Callable[[Claim, History], Fact | None], ...] = (
    _states_otherwise,
    _missed_rendezvous,
    _same_rank_twice,
    ran_out_of_batches,
    _left_early,
    _elsewhere,
)
