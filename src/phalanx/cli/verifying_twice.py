"""`phalanx verify --resume-with` and `--against`: the runs that a comparison needs, one after the other, and the files between them."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from phalanx.checkpoint_files import CheckpointError, Options, examine, is_checkpoint
from phalanx.model import Report, Unchecked
from phalanx.run.spec import JobSpec
from phalanx.verification import observe, one_device, resumed, resumption
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found, finding_of
from phalanx.verification.judge import judge

_MOST_FILES = 20_000
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__"})
_KEPT_BATCHES = 12


@dataclass(frozen=True)
class Ran:
    """One run of the script: what its ranks saw, and why it failed, if it did."""

    evidence: Evidence
    failure: str
    folders: Mapping[int, Path]  # of the ranks' records


class Run(Protocol):
    """Runs a job in a folder of this name, with other settings for its observers."""

    def __call__(self, spec: JobSpec, name: str, **settings: Any) -> Ran:
        """Run it to its end."""


class WrittenFiles:
    """What a run leaves in the working folder and where it saves; taken away so that the next run does not find it."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._before = self._seen()

    def _seen(self) -> dict[Path, tuple[int, int]]:
        found: dict[Path, tuple[int, int]] = {}
        waiting = [self._cwd]
        while waiting and len(found) < _MOST_FILES:
            folder = waiting.pop()
            for one in folder.iterdir():
                if one.is_symlink() or one.name in _SKIPPED:
                    continue
                if one.is_dir():
                    waiting.append(one)
                elif one.is_file():
                    status = one.stat()
                    found[one] = status.st_mtime_ns, status.st_size
        return found

    def written(self, evidence: Evidence) -> list[Path]:
        """New and changed files, and those that the ranks saved elsewhere."""
        now = self._seen()
        here = [path for path, state in now.items() if self._before.get(path) != state]
        saved = {
            self._cwd / str(one["path"]) for rank in evidence.ranks.values() for one in rank.all("save") if one["path"]
        }
        return here + sorted(path for path in saved if path.is_file() and path not in now)

    def take_away(self, paths: list[Path], aside: Path) -> dict[Path, Path]:
        """Move them; where each lies now."""
        aside.mkdir(parents=True, exist_ok=True)
        moved = {}
        for number, path in enumerate(paths):
            moved[path] = aside / f"{number}-{path.name}"
            shutil.move(path, moved[path])
        for folder in sorted({path.parent for path in paths}, key=lambda one: -len(one.parts)):
            if folder != self._cwd and folder.is_dir() and not any(folder.iterdir()) and not self._was_there(folder):
                folder.rmdir()
        return moved

    def _was_there(self, folder: Path) -> bool:
        return any(path.is_relative_to(folder) for path in self._before) or not folder.is_relative_to(self._cwd)

    @staticmethod
    def put_back(moved: Mapping[Path, Path]) -> None:
        """As they were."""
        for path, there in moved.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(there, path)


def verify_resume(spec: JobSpec, words: str, steps: int, folder: Path, cwd: Path, run: Run) -> Report:
    """Uninterrupted, killed after half, resumed; the checkpoint in between is examined."""
    files = WrittenFiles(cwd)
    whole = run(spec, "uninterrupted", dense=observe.ALL_STEPS)
    report = judge(whole.evidence)
    count = _steps(whole.evidence)
    saves = sorted({step for step, _ in resumption.saves_of(whole.evidence)})
    if whole.failure or count < 4:
        needs = "a script that makes at least 4 steps and ends well"
        return _unchecked(report, f"resuming: the uninterrupted run {whole.failure or f'made {count} steps'}", needs)
    early = [step for step in saves if 0 < step <= count // 2] or [step for step in saves if 0 < step < count - 1]
    if not early:
        needs = "a script that saves with torch.save (or what calls it) before its last step"
        return _unchecked(report, f"resuming: nothing was saved before the last of {count} steps", needs)
    moved = files.take_away(files.written(whole.evidence), folder / "aside")
    kill = min(max(count // 2, early[-1] + 2), count - 1)
    try:
        killed = run(spec, "killed", dense=observe.ALL_STEPS, kill=kill, steps=0, seconds=0.0)
        at = [step for step, _ in resumption.saves_of(killed.evidence) if step > 0]
        if not at or _steps(killed.evidence) < kill:
            return _unchecked(
                report,
                f"resuming: the run that was to be killed {killed.failure or 'saved nothing'}",
                "the same saves in every run",
            )
        saved = _examined(files.written(killed.evidence))
        again = replace(spec, command=(*spec.command, *shlex.split(words)))
        left = {"steps": steps - at[-1]} if steps else {}
        resuming = run(again, "resumed", dense=observe.ALL_STEPS, **left)
        return _compared(report, whole, killed, resuming, at[-1], saved)
    finally:
        for path in files.written(whole.evidence):
            path.unlink(missing_ok=True)
        files.put_back(moved)


def _compared(report: Report, whole: Ran, killed: Ran, resuming: Ran, step: int, saved: resumption.Saved) -> Report:
    if resuming.failure and not _steps(resuming.evidence):
        failed = Found(
            cause="resume-fails",
            headline=f"The script cannot resume from its own checkpoint of step {step}: {resuming.failure}",
            line=_line(killed.evidence, "save"),
            pattern="fix-behavior-logic",
            do="Run it with the option of --resume-with after a save, and mend what it raises.",
            symptom="fail.checkpoint-unusable",
            title="The script cannot resume",
        )
        return _with(report, [failed], whole.evidence)
    if not _steps(resuming.evidence):
        return _unchecked(report, "resuming: the resumed run made no step", "steps that are left after the checkpoint")
    unlike = resumption.differs(whole.evidence, killed.evidence, step)
    if unlike:
        what = f"later steps of the resumed run: two runs of the script differ before the kill ({unlike})"
        report = replace(report, not_checked=(*report.not_checked, Unchecked(what, "a script that sets its seeds")))
    found = resumption.Resumption(
        killed.evidence if unlike else whole.evidence,
        resuming.evidence,
        step,
        saved,
        _line(killed.evidence, "save"),
        _line(resuming.evidence, "load"),
    )
    told_of = resumed.compare(found)
    first = resumed.first_difference(found)
    if first is not None and not told_of and not unlike:
        what = f"why the resumed run differs from step {first[0]} on{first[1]}"
        report = replace(report, not_checked=(*report.not_checked, Unchecked(what, "a script that is deterministic")))
    if first is not None and told_of:
        where = f"The resumed run first differs from the uninterrupted one at step {first[0]}{first[1]}."
        told_of = [replace(one, why=f"{where} {one.why}") if not number else one for number, one in enumerate(told_of)]
    scope = f"{report.scope}; killed after {_steps(killed.evidence)} steps, resumed from the save of step {step} for {_steps(resuming.evidence)} steps"
    return _with(replace(report, scope=scope), told_of, whole.evidence)


def _examined(paths: list[Path]) -> resumption.Saved:
    """The states in all checkpoints that were written, a folder of several files as one."""
    states: dict[str, Any] = {}
    names, problems = [], []
    folders = {path.parent for path in paths if is_checkpoint(path.parent)}
    for path in sorted({*folders, *(one for one in paths if one.parent not in folders and is_checkpoint(one))}):
        try:
            seen = examine(path, Options(values=False))
        except CheckpointError:
            continue
        names.append(path.name)
        states = {**seen.summary["states"], **states}
        problems += [finding.first_line for finding in seen.report.findings if finding.severity == "error"]
    shown = names[0] if len(names) == 1 else f"what was saved ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
    return resumption.Saved(shown if names else "", states, tuple(problems))


def verify_against_one(spec: JobSpec, run: Run) -> Report:
    """The job, its batches kept; then one process, unchanged but for the batches of all ranks, joined."""
    several = run(spec, "several", keep=_KEPT_BATCHES)
    report = judge(several.evidence)
    if several.failure and not _steps(several.evidence):
        return _unchecked(report, f"one rank against {spec.size}: the job {several.failure}", "a job that makes a step")
    kept = [str(path) for _, path in sorted(several.folders.items())]
    count = min(one_device.joined_steps(several.evidence), _KEPT_BATCHES)
    if not count or not all((Path(path) / "batches").is_dir() for path in kept):
        needs = "batches of tensors from a torch DataLoader, at most 256 MiB of them"
        return _unchecked(report, f"one rank against {spec.size}: the batches cannot be given to one process", needs)
    alone = run(replace(spec, size=1), "alone", give=kept, steps=count, epochs=0, seconds=0.0)
    if not _steps(alone.evidence):
        return _unchecked(
            report,
            f"one rank against {spec.size}: one process {alone.failure or 'made no step'}",
            "a script that runs on one rank",
        )
    found, unchecked = one_device.compare(several.evidence, alone.evidence)
    report = replace(
        report,
        not_checked=(*report.not_checked, *unchecked),
        scope=f"{report.scope}; {min(count, _steps(alone.evidence))} of them again on one rank with the joined batches",
    )
    return _with(report, found, several.evidence)


def _steps(evidence: Evidence) -> int:
    return max((one.steps[-1].step + 1 for one in evidence.ranks.values() if one.steps), default=0)


def _line(evidence: Evidence, kind: str) -> str:
    records = [one for rank in evidence.ranks.values() for one in rank.all(kind) if one.get("line")]
    lines = [str(one["line"]) for one in records if one["path"]] or [str(one["line"]) for one in records]
    return lines[-1] if lines else ""


def _with(report: Report, found: list[Found], evidence: Evidence) -> Report:
    """Findings of the comparison behind those of the run itself, which may explain them."""
    return replace(report, findings=(*report.findings, *(finding_of(one, evidence) for one in found)))


def _unchecked(report: Report, what: str, needs: str) -> Report:
    return replace(report, not_checked=(Unchecked(what, needs, essential=True), *report.not_checked))
