"""Hosts on which no agent could be started: what the way there said, as a fact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from phalanx.model.ranks import name_ranks
from phalanx.preflight.channels import StreamChannel
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.packing import TOO_OLD
from phalanx.preflight.targets import Failure, Target

# What ssh and shells print, and what it means; the first that matches counts.
_REASONS = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed", "host-key-changed"),
    (r"Host key verification failed|No .* host key is known", "host-key-unknown"),
    (r"Permission denied \(|Too many authentication failures|no more authentication methods", "key-refused"),
    (r"Could not resolve hostname|Name or service not known|name resolution", "name-unresolvable"),
    (r"Connection refused", "refused"),
    (r"No route to host", "no-route"),
    (r"timed out|Operation timed out", "timed-out"),
    (r"no python3 in PATH", "no-python"),
    (r"python3?: (?:command )?not found|python3.{0,20}No such file|executable file not found", "no-python"),
    (r"kex_exchange|Connection (?:closed|reset)", "closed"),
)


def facts_of_failures(failures: Sequence[Failure]) -> list[CheckFact]:
    """One for each host."""
    return [_unusable(failure, several=len(failures) > 1) for failure in failures]


def facts_of_paths(targets: Iterable[Target]) -> list[CheckFact]:
    """Hosts whose shell found no interpreter by itself, though there was one."""
    found = []
    for target in targets:
        words = target.channel.last_words() if isinstance(target.channel, StreamChannel) else ""
        if (match := re.search(r"phalanx-check: no python3 in (PATH=.*)", words)) is not None:
            found.append(observe("ssh-path-incomplete", (target.label,), path=match[1]))
    return found


def target_name(target: Target) -> str:
    """What to call a target whose facts are not known."""
    ranks = name_ranks(target.ranks) if target.ranks else ""
    host = target.label or target.host
    return f"{ranks} on {host}" if ranks and host else ranks or host or "this machine"


def silent_target(label: str, why: str, host: str = "") -> CheckFact:
    """A target that was there and did not answer a question of the check."""
    return observe("host-stopped-answering", (host or label,), target=label, error=why)


def _unusable(failure: Failure, several: bool) -> CheckFact:
    reason = next((reason for pattern, reason in _REASONS if re.search(pattern, failure.said)), "")
    last = next((line.strip() for line in reversed(failure.said.splitlines()) if line.strip()), "")
    last = re.sub(rf"^\S*{re.escape(failure.host)}\S*:\s+", "", last)  # so that several hosts are one finding
    if several:
        last = re.sub(rf"(?<![\w.-]){re.escape(failure.host)}(?![\w.-])", "{host}", last)
    reason = reason or ("no-answer" if failure.timed_out else "not-started")
    if failure.status == TOO_OLD:
        reason = "python-too-old"
    flags: dict[str, Any] = {reason.replace("-", "_"): True}
    return observe(
        "host-unusable",
        (failure.host,),
        reason=reason,
        **flags,
        by_ssh=failure.way == "ssh",
        by_command=failure.way != "ssh",
        words=last or "nothing was said",
        evidence=((failure.host, failure.said[-400:]),) if failure.said and failure.said != last else (),
    )
