"""Asks for the diagnosis of a bundle in a process of its own, and says it shortly.

Own process: what the diagnosis needs in memory is not the supervisor's to carry through a week of training, and a fault in
it cannot end a job.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import IO, Any, cast

from phalanx.model.ranks import name_ranks

_PATIENCE = 300.0
_WIDTH = 100


class Diagnosis:
    """A diagnosis, got ready at once and made when it is asked for."""

    def __init__(self, bundle: Path) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `result`)
        self._began = time.monotonic()
        variables = {name: value for name, value in os.environ.items() if name != "PHALANX_JOB"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "phalanx.cli.warm_diagnose", str(bundle)],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.DEVNULL,
            env=variables,
            start_new_session=True,  # a Ctrl-C is for the job; the verdict is still wanted
        )

    def ask(self) -> Diagnosis:
        """Make it, of the bundle as it is from now on."""
        self._began = time.monotonic()
        with contextlib.suppress(OSError):  # it has ended: there will be no result
            cast("IO[bytes]", self.process.stdin).write(b"now\n")
            cast("IO[bytes]", self.process.stdin).close()
        return self

    @property
    def is_done(self) -> bool:
        """Whether the result is there, or will never be."""
        return self.process.poll() is not None or time.monotonic() - self._began > _PATIENCE

    def result(self) -> dict[str, Any] | None:
        """The report in the contract's form; None if there is none. Waits for it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.1, _PATIENCE - (time.monotonic() - self._began)))
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with self._output as file:
            file.seek(0)
            try:
                loaded = json.loads(file.read())
            except ValueError:
                return None
        return cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else None

    def abandon(self) -> None:
        """Nobody wants to know any more."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            cast("IO[bytes]", self.process.stdin).close()
        self._output.close()


def short_text(report: dict[str, Any]) -> str:
    """Headline, the user's line, class of fault, who, and the first fix; the rest is a command away."""
    verdict = report.get("verdict")
    if not verdict:
        return ""
    mark = "?" if verdict["confidence"] == "possible" else "✗"
    code = f"{verdict['rule']}, " if verdict.get("rule") else ""
    lines = textwrap.wrap(f"{mark} {verdict.get('headline') or verdict['summary']}", _WIDTH, subsequent_indent="  ")
    if (place := verdict.get("place")) and place["text"]:
        lines.append(f"    {Path(place['file']).name}:{place['line']} | {place['text']}")
    lines.append(f"  {verdict['title']}  [{code}{verdict['symptom']}, {_certainty(verdict)}]")
    lines.append(f"  who  {_who(verdict)}")
    for fix in [fix for fix in verdict["fixes"] if fix.get("basis") != "study"][:1]:
        text = f"fix  {fix['title']}: {fix['do']}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="       ")
    return "\n".join(lines)


def _certainty(verdict: dict[str, Any]) -> str:
    who, why = verdict.get("culprit_confidence"), verdict.get("cause_confidence") or verdict["confidence"]
    return str(why) if who in (None, why) else f"who: {who}, why: {why}"


def _who(verdict: dict[str, Any]) -> str:
    culprits, victims = verdict["culprit_ranks"], verdict["victim_ranks"]
    if not culprits:
        affected = verdict.get("affected_ranks") or []
        return f"no rank stands out: {name_ranks(affected)} alike" if len(affected) > 1 else "no rank stands out"
    return name_ranks(culprits) + (f"; {name_ranks(victims)} suffered from it" if victims else "")
