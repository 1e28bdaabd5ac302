"""Asks many targets at once, and turns their answers to calls into one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from phalanx.preflight.targets import AgentError, Target

_MOST_AT_ONCE = 256
SPARE_S = 6.0  # for an agent that is slow to answer, beyond what its work takes


@dataclass(frozen=True, slots=True)
class Called:
    """What came of one call."""

    source: int
    target: int
    kind: str  # mesh, store, given, spread, other
    ip: str
    port: int
    outcome: str
    order: int = 0  # among the addresses of a name
    peer: str | None = None
    token: str | None = None
    local: str | None = None
    saw: str | None = None
    banner: str = ""
    large: str = "ok"
    seconds: float = 0.0
    attempts: int = 1
    icmp: Mapping[str, Any] | None = None
    number: int | None = None  # the error's
    rtt_us: int = 0
    resent: int = 0
    route: Mapping[str, Any] | None = None

    @property
    def answered(self) -> bool:
        """The check's own listener answered."""
        return self.outcome == "ok"


def called_of(told: Mapping[str, Any]) -> Called:
    """One answer of the verb `connect`."""
    source, target, kind = told["id"]
    info = told.get("info") or {}
    saw = told.get("saw") or [None]
    return Called(
        source,
        target,
        kind,
        str(told.get("ip") or ""),
        int(told["port"]),
        str(told["outcome"]),
        int(told.get("order") or 0),
        told.get("peer"),
        told.get("token"),
        told.get("local"),
        saw[0],
        str(told.get("banner") or told.get("error") or ""),
        str(told.get("large") or "ok"),
        float(told.get("seconds") or 0.0),
        int(told.get("attempts") or 1),
        told.get("icmp"),
        told.get("errno"),
        int(info.get("min_rtt") or info.get("rtt") or 0),
        int(info.get("total_retrans") or 0),
        told.get("route"),
    )


class Talk:
    """The targets of one check, by number."""

    def __init__(self, targets: Sequence[Target], token: str) -> None:
        self.targets, self.token = targets, token
        self.silent: dict[int, str] = {}  # who stopped answering, and why
        self._pool = ThreadPoolExecutor(min(max(1, len(targets)), _MOST_AT_ONCE))

    def ask(self, verb: str, args: Mapping[int, Mapping[str, Any]], timeout: float) -> dict[int, list[dict[str, Any]]]:
        """Ask some targets the same thing at the same time; who does not answer is left out, and remembered."""

        def one(number: int) -> list[dict[str, Any]] | None:
            target = self.targets[number]
            asked = {"token": self.token, "label": target.label, **args[number]}
            try:
                return target.ask(verb, asked, timeout + SPARE_S)
            except AgentError as error:
                self.silent[number] = str(error) or "no answer"
                return None

        wanted = [number for number in args if number not in self.silent]
        answers = zip(wanted, self._pool.map(one, wanted), strict=True)
        return {number: told for number, told in answers if told is not None}

    def close(self) -> None:
        """No more questions."""
        self._pool.shutdown(wait=False)
