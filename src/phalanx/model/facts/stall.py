"""What the watch of a running job saw when nothing moved: who waits where, for whom, and what the accused does instead."""

from phalanx.model.event import EventKind
from phalanx.model.fact import Fact, FactType

_COMMON = {
    "seconds": "int",  # for how long nothing had moved
    "waiting": "ranks",
    "call": "str",  # in which most of them wait: `all_reduce at train.py:88`
    "own": "str",  # what the accused does: `is in evaluate() at train.py:131`
    "positions": "str",  # what every rank does
    "undecided": "str",  # the same, where nobody is accused
    "reason": "str",  # how the accused were told from the rest
    "seq": "int",  # number of the collective in its group
    "confirm": "str",  # how to see it again, where no bundle was kept
    "allow": "str",  # how to allow for a pause that is meant, where nobody watches the job
}
# Told by what flight recorders do not keep (roots, names, addresses, sends and receives, the script's conditions and loops),
# so that these cannot contradict it.
BEYOND_RECORDERS = frozenset(
    {"root", "name", "address", "aside", "chosen", "ahead", "circle", "starting", "exchange", "skipped", "extra"}
)


def is_beyond_recorders(fact: Fact | None, but: str = "") -> bool:
    """Whether the watch decided a stall by what recorders do not keep; `but` is a reason that does not count."""
    reason = fact.fields.get("reason") if fact is not None and fact.id.startswith("stall.") else None
    return reason in BEYOND_RECORDERS and reason != but


def _stall(name: str, text: str, **fields: str) -> FactType:
    return FactType(f"stall.{name}", text, {**_COMMON, **fields}, EventKind.STALL)


FACTS = (
    _stall(
        "waits-for-rank",
        "Nothing has moved for {seconds} s: {positions}{sides?; different {what}: {sides}}",
        what="str",
        sides="names",
        busy_in="str",  # where the accused is in its own code: `load() at train.py:12`
        condition="str",  # on the rank, around it
    ),
    _stall(
        "waits-for-peers",
        "Nothing has moved for {seconds} s: {positions}{sides?; different {what}: {sides}}",
        what="str",
        sides="names",
    ),
    _stall("waits-for-data", "Nothing has moved for {seconds} s: {positions}"),
    _stall("waits-for-lock", "Nothing has moved for {seconds} s: {positions}"),
    _stall("does-not-serve", "{ranks} {serving} (nothing has moved for {seconds} s)", serving="str"),
    _stall("stopped", "{positions}"),
    _stall("does-not-end", "Nothing has moved for {seconds} s: {positions}"),
    _stall("cycle", "Nothing has moved for {seconds} s: {positions}; in a circle: {calls}", calls="str"),
    _stall(
        "root-differs",
        "Nothing has moved for {seconds} s: {positions}; different roots of {root_call}: {roots}",
        root_call="str",
        roots="names",
        chosen="str",
    ),
    _stall(
        "left-common-path",
        "Nothing has moved for {seconds} s: {positions}",
        condition="str",  # on the rank, under which the accused stands alone
        ahead="str",  # where it is already: `step 21`
        behind="ranks",  # who still waits for what it left out
        half="str",  # of an exchange, that it left out: `send`
        half_condition="str",
        loop="str",  # that it has left
        chosen="str",  # what it does otherwise, and the condition that chose it
        peers_in="str",  # the call in which it names another peer than the rest do
        sides="names",
        skipped="str",  # the call that it did not make, others did: `allreduce at train.py:40`
        extra="str",  # the call that it made, others did not
        round="str",  # in which pass of the loops: `epoch 1, step 7`
        others="str",  # who these are
        counted="str",  # how many calls the accused made in this round, beside the rest
        way="str",  # by which line it can have passed the call by
    ),
    FactType("stall.recovered", "The job moves again after {seconds} s", {"seconds": "int"}, EventKind.PROGRESS),
)
