"""Beside the ranks of a node: watches them as `phalanx run` would, writes the bundle, and says which rank hangs or died, and why.

It belongs to no launcher: it sends no signal, ends nobody, and ends itself when the ranks of its node are gone.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.embedded.local_ranks import LocalRank, LocalRanks
from phalanx.embedded.meeting import Meeting
from phalanx.embedded.nodes import Nodes
from phalanx.embedded.teller import Teller
from phalanx.embedded.verdict_timing import VerdictTiming
from phalanx.model import bundle as layout
from phalanx.model.facts import make_fact
from phalanx.notify.channels import ChannelError
from phalanx.notify.metrics import MetricsError
from phalanx.notify.outlets import Outlets, open_outlets
from phalanx.run.bundle import BundleWriter
from phalanx.run.ending import describe_code
from phalanx.run.exporting import Exporting
from phalanx.run.observer import GIVEN_UP, Observation, Observer, Setup, make_observer
from phalanx.run.watch.asking import tell_trackers
from phalanx.sources.bundle import read_manifest

_TICK_S = 0.5
_SETTLE_S = 15.0  # in which further ranks of the node are awaited, where no launcher says how many there are
_OTHERS_S = 20.0  # in which the companions of other nodes may come to their end
_LINE_S = 5.0  # in which their lines may come about
_BEFORE_SNAPSHOT_S = 0.5
_ENDED_BY_LAUNCHER = (-15, -9, -2, -1)
_ENDED_HUNG = "somebody ended the job while it hung"


class Companion:
    """One for each node and job."""

    def __init__(self, bundle: Path, variables: Mapping[str, str] = os.environ) -> None:
        self.bundle = bundle
        self.attempt = layout.attempt_folder(bundle, 0)
        self.host = os.uname().nodename
        self.ranks = LocalRanks(self.attempt, self.host)
        self.nodes = Nodes(bundle, self.host)
        self.meeting = Meeting(bundle, self.host, variables)
        self.teller = Teller(self.ranks)
        self.writer = BundleWriter(bundle, self.teller.say)
        self.verdicts = VerdictTiming(bundle, self.writer, self.teller.say_block)
        self.observer: Observer | None = None
        self.verdicts.on_verdict.append(
            lambda report, text: print(tell_trackers(self.attempt, report, text), flush=True)
        )
        self.outlets = self._outlets(variables)
        if self.outlets is not None:
            self.verdicts.on_verdict.append(self.outlets.verdict)
        self._stall_after = float(variables.get("PHALANX_STALL_AFTER") or 8.0)
        self._exits: dict[int, int | None] = {}
        self._first_death: str = ""
        self._snapshot_at: float | None = None
        self._last_arrival = time.monotonic()
        self._lost: set[str] = set()

    def _outlets(self, variables: Mapping[str, str]) -> Outlets | None:
        name = str(read_manifest(self.bundle).get("name") or self.bundle.name)
        try:
            return open_outlets(name, self.bundle, self.teller.say, (), None, variables)
        except (ChannelError, MetricsError) as error:
            print(f"phalanx: {error}", flush=True)  # the job goes on; this is in the node's log
            return None

    def run(self) -> None:
        """Until the ranks of this node, and where it leads those of all nodes, have ended."""
        self.writer.hold()
        try:
            self._arrivals()
            while self.ranks.living or not self.ranks.known or self._is_needed_by_others():
                for one in self.ranks.wait(_TICK_S) if self.ranks.known else ():
                    self._ended(one)
                if not self.ranks.known:
                    time.sleep(_TICK_S)
                    if time.monotonic() - self._last_arrival > _SETTLE_S:
                        return  # who started us is gone
                self._arrivals()
                self._tick()
            self._conclude()
        finally:
            if self.observer is not None:
                self.observer.close()
            self.meeting.close()
            self.teller.close()
            if self.outlets is not None:
                self.outlets.close()

    def _arrivals(self) -> None:
        """Ranks come one after the other; the watch begins when all of the node are there, or none has come for a while."""
        came = self.ranks.look_for_more()
        for one in came:
            self._last_arrival = time.monotonic()
            variables = _variables_of(one.pid)
            self.writer.write_process(self.attempt, one.rank, one.told, variables)
        if came and self.observer is not None:
            self.observer.close()  # a latecomer: begin anew, with all of them
            self.observer = None
        expected = self.ranks.expected or self.ranks.size
        waited = time.monotonic() - self._last_arrival
        if self.observer is None and self.ranks.living and (len(self.ranks.known) >= expected or waited > _SETTLE_S):
            self._begin()

    def _begin(self) -> None:
        ranks = tuple(sorted(self.ranks.known))
        is_whole = len(ranks) >= self.ranks.size
        self.writer.watch_name = layout.WATCH if is_whole else f"watch-{self.host}.jsonl"
        setup = Setup(
            attempt=self.attempt,
            size=self.ranks.size,
            framework=None,
            command=tuple(self.ranks.known[ranks[0]].told.get("command") or ()),
            stall_after=self._stall_after,
            ranks=() if is_whole else ranks,
        )
        made = make_observer(setup, self.teller.say)
        self.observer = made if self.outlets is None else Exporting(made, self.teller.say, self.outlets)
        self.observer.started(self.ranks.living)

    def _is_needed_by_others(self) -> bool:
        """Nodes that share no folder with us send their evidence here, and still have ranks."""
        return self.nodes.hub == self.host and any(node.living and not node.is_silent for node in self.nodes.others)

    def _meet(self) -> None:
        self.meeting.secrets = self.writer.secrets
        self.meeting.look(tuple(self.ranks.known), self.ranks.size)
        self.nodes.hub = self.meeting.hub

    def _tick(self) -> None:
        if self.observer is not None or not self.ranks.living:
            self._meet()
        leads = self.nodes.leads(self.ranks.living, self.ranks.known)
        for seen in self.observer.tick() if self.observer is not None and self.ranks.living else ():
            self._note(seen, leads)
        if self._snapshot_at is not None and time.monotonic() >= self._snapshot_at and self.observer is not None:
            self._snapshot_at = None
            if self.ranks.living:
                self.observer.snapshot("a death")
        self.nodes.tell(self.ranks.living, self._exits)
        if leads:
            others = [node for node in self.nodes.others if node.living and not node.is_silent]
            stalled = self.nodes.stalled is not None
            any_stalled = stalled or any(node.stalled for node in others)
            all_stalled = stalled and all(node.stalled for node in others)
            failed = self._has_failed() or any(node.has_failed for node in self.nodes.others)
            if any_stalled or failed:
                self._note_lost_nodes()
            self.verdicts.look(any_stalled, all_stalled, failed and self._first_death != _ENDED_HUNG)

    def _note(self, seen: Observation, leads: bool) -> None:
        if seen.kind == "suspicion":
            if leads:
                self.verdicts.suspect()
            return
        is_past = seen.data.get("kind") == GIVEN_UP
        if self._exits and seen.kind in ("stall", "recovered", "straggler") and not is_past and self._has_failed():
            return  # ranks whose peers have died neither stand still nor move again
        self.writer.write_observation(self.attempt, seen)
        if seen.kind == "stall" and not is_past:
            self.nodes.stalled = time.time()
        elif seen.kind == "recovered":
            self.nodes.stalled = None
            self.verdicts.recovered()
        if leads and seen.kind in ("stall", "recovered", "straggler", "network") and seen.text:
            self.teller.say(seen.text)

    def _ended(self, one: LocalRank) -> None:
        """Write down how a rank ended, as far as that is known."""
        self._exits[one.rank] = one.code
        output = layout.rank_folder(self.attempt, one.rank) / layout.OUTPUT
        with contextlib.suppress(OSError):
            for line in output.read_bytes().splitlines()[-120:]:
                if self.observer is not None:
                    self.observer.heard(one.rank, line)
        why = (
            self.observer.ended(one.rank, one.code if one.code is not None else -9) if self.observer is not None else {}
        )
        if one.code is None and why.get("cause") not in ("oom-cgroup", "oom-machine"):
            self._vanished(one.rank)
            return
        code = one.code if one.code is not None else -9
        if code in _ENDED_BY_LAUNCHER and not self._first_death and self._is_left_hanging(why):
            self._first_death = _ENDED_HUNG
        by = self._first_death if self._first_death and code in _ENDED_BY_LAUNCHER else None
        if code != 0 and not self._first_death:
            self._first_death = f"rank {one.rank} ended with {describe_code(code)}"
            self._snapshot_at = time.monotonic() + _BEFORE_SNAPSHOT_S
        facts: dict[str, Any] = {
            "schema": "phalanx.exit/1",
            "rank": one.rank,
            "code": code,
            "how": describe_code(code),
            "at": time.time(),
            "seconds": round(time.time() - float(one.told.get("started") or time.time()), 3),
            "order": len(self._exits) - 1,
            "by": by,
            "why": dict(why),
        }
        self.writer.write_exit(self.attempt, one.rank, facts)

    def _is_left_hanging(self, why: Mapping[str, Any]) -> bool:
        """Whether the ranks here stand still, and this one was ended by somebody who saw that, not for its memory."""
        return self.nodes.stalled is not None and not str(why.get("cause")).startswith("oom")

    def _vanished(self, rank: int) -> None:
        """Gone without last words and waited for by its launcher before us."""
        text = "it was gone at once, without running its exit handlers (killed, or os._exit); its launcher knows the exit status"
        fact = make_fact("rank.died", {"cause": "unknown", "why": text, "child": False}, ranks=(rank,), source="watch")
        self.writer.write_observation(self.attempt, Observation("death", (rank,), f"rank {rank}: {text}", {}, (fact,)))

    def _has_failed(self) -> bool:
        return any(code != 0 for code in self._exits.values())

    def _note_lost_nodes(self) -> None:
        for node in self.nodes.others:
            if node.is_silent and node.living and node.host not in self._lost:
                self._lost.add(node.host)
                why = f"its companion has written nothing for {node.age:.0f} s"
                fields = {"host": node.host, "why": why}
                fact = make_fact("network.host-lost", fields, ranks=node.living, hosts=(node.host,), source="watch")
                seen = Observation(
                    "network", node.living, f"the host {node.host} is off or cut off: {why}", {}, (fact,)
                )
                self._note(seen, leads=True)

    def _conclude(self) -> None:
        """All ranks here have ended. Who leads waits for the others' evidence, says the verdict, and closes the bundle."""
        self.nodes.tell({}, self._exits, ended=True)
        self._await_line()
        until = time.monotonic() + _OTHERS_S
        while any(not node.ended and not node.is_silent for node in self.nodes.others) and time.monotonic() < until:
            if not self.nodes.leads({}, self.ranks.known) and any(node.living for node in self.nodes.others):
                break  # others live, and lead
            time.sleep(_TICK_S)
            self.nodes.tell({}, self._exits, ended=True)
        if not self.nodes.leads({}, self.ranks.known):
            if self.nodes.hub is not None:
                self._hear_verdict()
            return
        if self.observer is not None:
            for seen in self.observer.tick():
                self._note(seen, leads=True)
        codes = {**self._exits, **{rank: code for node in self.nodes.others for rank, code in node.exits.items()}}
        # A job whose ranks were all asked to end was ended by somebody: that needs no verdict.
        # So was one that hung, and its verdict is that of the stall.
        needs_verdict = self._first_death != _ENDED_HUNG and any(
            code not in (0, -15, -2, -1) for code in codes.values()
        )
        self.verdicts.conclude(needs_verdict)
        self._close_bundle(codes)

    def _await_line(self) -> None:
        """A job that failed as soon as it began may be over before its nodes have found each other."""
        until = time.monotonic() + _LINE_S
        while self._has_failed() and self.meeting.is_awaited and time.monotonic() < until:
            time.sleep(_TICK_S)
            self._meet()

    def _hear_verdict(self) -> None:
        """The verdict is made on another host, and this bundle is this node's alone: wait for it, and close the bundle."""
        until = time.monotonic() + _OTHERS_S
        while time.monotonic() < until:
            hub = next((node for node in self.nodes.others if node.host == self.nodes.hub), None)
            failed = self._has_failed() or (hub is not None and hub.has_failed)
            if hub is None or hub.is_silent or (hub.ended and not (failed and self._lacks_report())):
                break
            time.sleep(_TICK_S)
            self.nodes.tell({}, self._exits, ended=True)
        self._close_bundle(self._exits)

    def _lacks_report(self) -> bool:
        return not (self.bundle / layout.REPORT).exists()

    def _close_bundle(self, codes: Mapping[int, int | None]) -> None:
        failed = any(code != 0 for code in codes.values())
        self.writer.adopt(read_manifest(self.bundle))
        reason = self._first_death or ("a rank ended badly" if failed else "all ranks ended well")
        first = [rank for rank, code in codes.items() if code != 0][:1]
        self.writer.end_attempt(reason, first, restarts=False)
        self.writer.finish(1 if failed else 0, reason)


def _variables_of(pid: int) -> dict[str, str]:
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.decode("utf-8", "replace").partition("=") for item in data.split(b"\0") if item)
    return {name: value for name, equals, value in pairs if equals}
