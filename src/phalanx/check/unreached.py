"""Hosts on which no agent could be started: what the way there said, as a reading."""

from __future__ import annotations

import re
from collections.abc import Iterable

from phalanx.check.channels import StreamChannel
from phalanx.check.packing import TOO_OLD
from phalanx.check.parties import Failure, Party
from phalanx.check.reading import Reading
from phalanx.model.ranks import name_ranks

# What ssh prints, and what it means; the first that matches counts.
_MEANINGS = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed", "its host key has changed"),
    (r"Host key verification failed|No .* host key is known", "its host key is not known here"),
    (r"Permission denied|Too many authentication failures|no more authentication methods", "the key is refused"),
    (r"Could not resolve hostname|Name or service not known|name resolution", "the name does not resolve"),
    (r"Connection refused", "nothing listens on its SSH port"),
    (r"No route to host", "there is no route to it, or a firewall rejects"),
    (r"timed out|Operation timed out", "the connection timed out"),
    (r"no python3 in PATH", "there is no Python"),
    (
        r"python3?: (?:command )?not found|python3.{0,20}No such file|executable file not found",
        "there is no python3 in PATH",
    ),
    (r"kex_exchange|Connection (?:closed|reset)", "the connection was closed at the greeting"),
)


def readings_of_failures(failures: Iterable[Failure]) -> list[Reading]:
    """One for each host."""
    return [_reading(failure) for failure in failures]


def readings_of_paths(parties: Iterable[Party]) -> list[Reading]:
    """Hosts whose shell found no interpreter by itself, though there was one."""
    found = []
    for party in parties:
        words = party.channel.last_words() if isinstance(party.channel, StreamChannel) else ""
        if (match := re.search(r"phalanx-check: no python3 in (PATH=.*)", words)) is not None:
            text = f"check: the PATH of the non-interactive shell on {party.label} has no python3 ({match[1]})"
            found.append(Reading(text, accused=(party.label,)))
    return found


def party_name(party: Party) -> str:
    """What to call a party whose facts are not known."""
    ranks = name_ranks(party.ranks) if party.ranks else ""
    host = party.label or party.host
    return f"{ranks} on {host}" if ranks and host else ranks or host or "this machine"


def silent_party(label: str, why: str, host: str = "") -> Reading:
    """A party that was there and did not answer a question of the check."""
    return Reading(f"check: {label} stopped answering the check ({why})", accused=(host or label,))


def _reading(failure: Failure) -> Reading:
    meaning = next((text for pattern, text in _MEANINGS if re.search(pattern, failure.said)), "")
    last = next((line.strip() for line in reversed(failure.said.splitlines()) if line.strip()), "")
    if not meaning:
        meaning = "it did not answer in time" if failure.timed_out else "the agent did not start"
    if failure.status == TOO_OLD:
        meaning = "its Python is older than 3.8"
    way = "SSH" if failure.way == "ssh" else "the command given by --each"
    return Reading(
        f"check: {failure.host} cannot be used over {way}: {meaning} ({last or 'nothing was said'})",
        accused=(failure.host,),
        values={"host": failure.host},
        said=((failure.host, failure.said[-400:]),) if failure.said and failure.said != last else (),
    )
