"""Ports that a rank could not open because another rank of the same job listens there: then the list of addresses is wrong, and not the rank
that came second."""

from __future__ import annotations

import re

from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.history import History
from phalanx.sources.readers.servers import SOURCE

_REFUSED = re.compile(r"[Ff]ailed to add|No address added|in use|EADDRINUSE|failed to (?:listen|bind)")
_PORT = re.compile(r":(\d{2,5})\b(?!:)")


def is_held_by_a_peer(claim: Claim, history: History) -> bool:
    """Whether a port that the accused ranks were refused is one at which another rank of the job says that it listens, without a claim to it."""
    refused = [proof.event for proof in claim.roots if _REFUSED.search(proof.event.text)]
    ports = {int(port) for event in refused for port in _PORT.findall(event.text.split("]", 1)[-1])}
    served = [event for event in history.seen.events if event.source == SOURCE and event.rank is not None]
    holders = {event.rank for event in served if event.data.get("port") in ports} - claim.printers
    # Whoever is the task of its own number has its own port: then the other one took its place.
    return bool(holders) and not any(event.data.get("task") == event.rank for event in served if event.rank in holders)
