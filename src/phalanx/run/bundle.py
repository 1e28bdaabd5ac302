"""Writes the bundle so that a kill at any moment leaves it readable, and so that a full disk does not end the job.

What is whole is written beside its place and then moved there; what grows is only ever appended to.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from phalanx import __version__, private
from phalanx.model import bundle as layout
from phalanx.run.observer import Observation
from phalanx.run.plan import Plan, PlanError
from phalanx.run.sealing import seal
from phalanx.sources.bundle import why_ended
from phalanx.sources.secrets import redact, redact_command, redact_environment, secret_values


def make_folder(wish: Path | None, name: str, now: float | None = None) -> Path:
    """The bundle's folder, made. Raises PlanError where it cannot be."""
    try:
        if wish is not None:
            if wish.is_dir() and any(wish.iterdir()):
                raise PlanError(f"--bundle {wish}: the folder is not empty; give a new one")
            private.make_folder(wish)
            return wish
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)[:60] or "job"
        for again in range(1, 1000):
            folder = Path("phalanx-runs", f"{stamp}-{safe}" + (f"-{again}" if again > 1 else ""))
            try:
                if not folder.parent.exists():
                    private.make_folder(folder.parent)
                private.make_folder(folder, exist_ok=False)
            except FileExistsError:
                if not folder.parent.is_dir():
                    raise
                continue  # another job began in the same second
            return folder
    except OSError as error:
        raise PlanError(f"cannot make the bundle's folder: {error}; say with --bundle where it may go") from error
    raise PlanError("a thousand jobs began in this second; say with --bundle where this one goes")


class BundleWriter:
    """All writing into one bundle. Errors of the disk are said once and otherwise swallowed: the job matters more."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self._say = say
        self._said = False
        self._manifest: dict[str, Any] = {}
        self._outputs: dict[tuple[int, int], int] = {}
        self._secrets: set[str] = set()
        self._running: int | None = None
        self.watch_name = layout.WATCH  # several nodes that write one bundle have each its own

    @property
    def secrets(self) -> set[str]:
        """Values of the ranks' variables that must not be seen."""
        return self._secrets

    def describe(self, plan: Plan) -> None:
        """The manifest's beginning: what is run, and how."""
        spec = plan.spec
        facts = {
            "command": redact_command(plan.argv),
            "name": plan.name,
            "size": plan.size,
            "framework": plan.framework.NAME,
            "framework_told_by": redact(plan.told_by),
            "roles": [f"{seat.role}:{seat.index}" for seat in plan.seats] if spec.roles else [],
        }
        self.begin(facts)

    def begin(self, facts: Mapping[str, Any]) -> None:
        """The manifest of a job that starts now, with what is known of it."""
        here = {"host": socket.gethostname(), "folder": str(Path.cwd()), "started": time.time()}
        state = {"state": "running", "attempts": []}
        self._try(self._hold)
        self._manifest = {"schema": layout.SCHEMA, "phalanx": __version__, **facts, **here, **state}
        self.write_manifest()

    def hold(self) -> None:
        """Say that somebody writes the bundle, for as long as this process lives."""
        self._try(self._hold, quietly=True)

    def adopt(self, manifest: Mapping[str, Any]) -> None:
        """Go on with a bundle that another process began."""
        self._manifest = {"attempts": [{"attempt": 0}], **manifest}

    def _hold(self) -> None:
        """Hold a lock that goes with this process: a reader of the bundle can tell a job that runs from one that was cut off."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._running = os.open(self.folder / layout.RUNNING, flags, private.FILE)
        fcntl.flock(self._running, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def amend(self, facts: Mapping[str, Any]) -> None:
        """What has changed since the job began."""
        self._manifest |= facts
        self.write_manifest()

    def begin_attempt(self, number: int, ranks: Iterable[int]) -> Path:
        """Folders for one start of the job."""
        attempt = layout.attempt_folder(self.folder, number)
        for rank in ranks:
            self._try(lambda rank=rank: private.make_folder(layout.rank_folder(attempt, rank)))  # type: ignore[misc]
        self._try(lambda: attempt.chmod(private.FOLDER))
        self._manifest["attempts"].append({"attempt": number, "started": time.time()})
        self.write_manifest()
        return attempt

    def end_attempt(self, reason: str, culprits: list[int], restarts: bool) -> None:
        """Why the attempt is over, in words and by rank. What its ranks wrote themselves is redacted now."""
        attempt = layout.attempt_folder(self.folder, self._manifest["attempts"][-1]["attempt"])
        self._try(lambda: seal(attempt, self._secrets), quietly=True)
        last = self._manifest["attempts"][-1]
        last |= {"ended": time.time(), "reason": reason, "first_ranks": culprits, "restarted": restarts}
        self.write_manifest()

    def why_ended(self) -> str:
        """Why the last attempt ended, as the report will say it."""
        return why_ended(self.folder, self._manifest["attempts"][-1])

    def finish(self, status: int, reason: str) -> None:
        """The job is over."""
        self._manifest |= {"state": "ended", "ended": time.time(), "status": status, "reason": reason}
        self.write_manifest()
        if self._running is not None:
            self._try((self.folder / layout.RUNNING).unlink, quietly=True)
            os.close(self._running)
            self._running = None

    def write_manifest(self) -> None:
        """The manifest as it stands now."""
        self.write_json(self.folder / layout.MANIFEST, self._manifest)

    def write_process(self, attempt: Path, rank: int, facts: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        """What a rank is, and its environment without secrets."""
        folder = layout.rank_folder(attempt, rank)
        self._secrets |= secret_values(variables)
        self.write_json(folder / layout.PROCESS, facts)
        self.write_json(folder / layout.ENVIRONMENT, redact_environment(variables))

    def write_exit(self, attempt: Path, rank: int, facts: Mapping[str, Any]) -> None:
        """How a rank ended."""
        self.write_json(layout.rank_folder(attempt, rank) / layout.EXIT, facts)

    def write_observation(self, attempt: Path, seen: Observation) -> None:
        """A line of what the watch saw."""
        line: dict[str, Any] = {"at": time.time(), "kind": seen.kind, "ranks": list(seen.ranks), "text": seen.text}
        line |= {"data": dict(seen.data), "facts": [fact.to_json() for fact in seen.facts]}
        data = (json.dumps(line, ensure_ascii=False, default=str) + "\n").encode("utf-8", "replace")

        def append() -> None:
            with open(attempt / self.watch_name, "ab", buffering=0, opener=private.opener) as file:
                file.write(data)

        self._try(append)

    def write_json(self, path: Path, value: object) -> None:
        """Replace a file by a whole new one."""
        text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
        beside = path.with_name(f".{path.name}.new")

        def replace() -> None:
            private.write_text(beside, text + "\n")
            beside.replace(path)

        if not self._try(replace):
            self._try(lambda: beside.unlink(missing_ok=True), quietly=True)

    def open_output(self, attempt: Path, number: int, rank: int) -> None:
        """The file of a rank's output, ready to be appended to."""

        def open_it() -> None:
            path = layout.rank_folder(attempt, rank) / layout.OUTPUT
            self._outputs[number, rank] = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, private.FILE
            )

        self._try(open_it)

    def write_output(self, number: int, rank: int, data: bytes, is_error: bool = False) -> None:
        """Append to a rank's output."""
        descriptor = self._outputs.get((number, rank))
        if descriptor is None:
            return

        def append() -> None:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]

        self._try(append)

    def close_outputs(self) -> None:
        """Close the files of an attempt."""
        for descriptor in self._outputs.values():
            os.close(descriptor)
        self._outputs.clear()

    def _try(self, act: Callable[[], object], quietly: bool = False) -> bool:
        try:
            act()
        except OSError as error:
            if not self._said and not quietly:
                self._said = True
                self._say(f"the bundle cannot be written ({error.strerror}): the job goes on, the bundle has gaps")
            return False
        return True
