"""Who takes part in a check, and how each is reached: this machine, SSH, a command before the agent's."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phalanx.preflight.channels import AgentError, AgentTimeoutError, Channel, LocalChannel, StreamChannel
from phalanx.preflight.packing import BOOTSTRAP, shell_command

__all__ = ["AgentError", "AgentTimeoutError", "Failure", "Target", "by_command", "by_ssh", "start_all", "this_machine"]

_MOST_AT_ONCE = 64
_HANGS_S = 1.5  # after which ssh is tried beside with small packets
_POLL_S = 0.02
_SMALL_SEGMENTS = Path(__file__).with_name("small_segments.py")
SSH_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "LogLevel=ERROR")


@dataclass(frozen=True, slots=True)
class Target:
    """A host or a rank that can be asked. `label` is unique among the targets."""

    label: str
    host: str
    ranks: tuple[int, ...]
    channel: Channel

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """The answers to one request, from any thread. Raises AgentError."""
        return self.channel.ask(verb, args, timeout)

    def renamed(self, label: str, host: str, ranks: tuple[int, ...]) -> Target:
        """The same target under what its facts say it is."""
        return replace(self, label=label, host=host, ranks=ranks)

    def close(self) -> None:
        """End its agent."""
        self.channel.close()


@dataclass(frozen=True, slots=True)
class Failure:
    """A host on which no agent could be started, with what was said and how the way there ended."""

    host: str
    way: str  # ssh, command
    said: str
    status: int | None = None
    timed_out: bool = False


def this_machine(label: str = "") -> Target:
    """The agent in this process."""
    return Target(label, label, (), LocalChannel())


def by_ssh(host: str, python: str | None, timeout: float) -> Target | Failure:
    """Over the system's ssh with the user's own configuration, without ever asking for a password."""
    proxy = f"ProxyCommand={shlex.quote(sys.executable)} {shlex.quote(str(_SMALL_SEGMENTS))} %h %p"
    # Where large packets vanish, the handshake hangs: with small ones it comes through, and the probes say what is wrong.
    ways = [["ssh", *SSH_OPTIONS, *more, host, shell_command(python)] for more in ((), ("-o", proxy))]
    began = time.monotonic()
    channels: list[StreamChannel] = []
    failures: dict[int, Failure] = {}
    while time.monotonic() < began + timeout and len(failures) < len(ways):
        is_hanging = time.monotonic() > began + _HANGS_S
        if len(channels) == len(failures) or (is_hanging and len(channels) < len(ways)):
            if failures and "timed out" not in failures[0].said:
                break
            try:
                channels.append(StreamChannel(ways[len(channels)]))
            except AgentError as error:
                return Failure(host, "ssh", str(error))
        for number, channel in enumerate(channels):
            try:
                channel.wait_for_hello(_POLL_S)
            except AgentTimeoutError:
                continue
            except AgentError as error:
                failures.setdefault(number, Failure(host, "ssh", str(error), channel.status))
            else:
                _close(other for other in channels if other is not channel)
                return Target(host, host, (), channel)
    late = f"did not start within {timeout:g} s: {channels[0].last_words() or 'it said nothing'}"
    _close(channels)
    return failures.get(0) or Failure(host, "ssh", late, channels[0].status, timed_out=True)


def _close(channels: Iterable[StreamChannel]) -> None:
    """In the background: an ssh that hangs takes seconds to end."""
    for channel in channels:
        threading.Thread(target=channel.close, daemon=True).start()


def by_command(host: str, template: str, python: str | None, timeout: float) -> Target | Failure:
    """Behind a command that runs what follows it on the host, as `kubectl exec -i {host} --` does."""
    try:
        words = shlex.split(template.replace("{host}", host))
    except ValueError as error:
        return Failure(host, "command", f"--each {template}: {error}")
    return _start(host, "command", [*words, python or "python3", "-c", BOOTSTRAP], timeout)


def _start(host: str, way: str, command: Sequence[str], timeout: float) -> Target | Failure:
    try:
        channel = StreamChannel(command)
    except AgentError as error:
        return Failure(host, way, str(error))
    try:
        channel.wait_for_hello(timeout)
    except AgentError as error:
        timed_out = isinstance(error, AgentTimeoutError)
        channel.close()
        return Failure(host, way, str(error), channel.status, timed_out)
    return Target(host, host, (), channel)


def start_all(starters: Sequence[Callable[[], Target | Failure]]) -> tuple[list[Target], list[Failure]]:
    """All at once: the time is that of the slowest."""
    if not starters:
        return [], []
    with ThreadPoolExecutor(min(len(starters), _MOST_AT_ONCE)) as pool:
        found = list(pool.map(lambda start: start(), starters))
    targets = [one for one in found if isinstance(one, Target)]
    return targets, [one for one in found if isinstance(one, Failure)]
