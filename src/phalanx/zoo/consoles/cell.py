"""One cell of the matrix: a situation printed in a form, with the truth of what this form still proves."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from phalanx.zoo.consoles.form import Form, all_forms
from phalanx.zoo.consoles.job import make_job
from phalanx.zoo.consoles.situation import Situation, all_situations
from phalanx.zoo.consoles.stage import Line, Stage

OPEN, HELD_BACK = "open", "held-back"


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a console, and what of it the console still shows.

    `culprits` are those that the console has evidence for: empty where the fault has none, or this form lost it.
    `shows`: of `who`, `why` and `what`, what can be told from it at all.
    """

    situation: str
    form: str
    split: str
    healthy: bool
    symptom: str | None
    also: tuple[str, ...]
    cause: str | None
    culprits: tuple[int, ...]
    true_culprits: tuple[int, ...]
    fixes: tuple[str, ...]
    shows: tuple[str, ...]
    world: int
    torch: str
    nccl: str
    parallelism: str


@dataclass(frozen=True, slots=True)
class Console:
    """The files of a job and their truth."""

    files: dict[str, str]
    truth: Truth

    def write(self, folder: Path) -> Path:
        """Put the files into `folder/logs` and the truth beside them; the folder of the logs."""
        for name, text in self.files.items():
            file = folder / "logs" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        (folder / "truth.json").write_text(json.dumps(asdict(self.truth), indent=2) + "\n", encoding="utf-8")
        return folder / "logs"


def _hash(*words: str) -> int:
    return int.from_bytes(hashlib.sha256("/".join(words).encode()).digest()[:8])


def split_of(situation: str, form: str) -> str:
    """A third of all cells is held back, by their names alone."""
    return HELD_BACK if _hash("split", situation, form) % 3 == 0 else OPEN


def sample_of(situation: str, form: str, every: int) -> bool:
    """Whether a cell is in the sample of every n-th, which does not depend on the split."""
    return _hash("sample", situation, form) % every == 0


def fits(situation: Situation, form: Form) -> bool:
    return situation.launcher in (None, form.launcher)


def cells() -> list[tuple[Situation, Form]]:
    """All cells in the order of their names."""
    return [(one, form) for one in all_situations().values() for form in all_forms().values() if fits(one, form)]


def make(situation: Situation, form: Form, *, variant: int = 0) -> Console:
    """Play the situation and print it in the form; the same names and variant give the same console."""
    rng = random.Random(_hash("cell", situation.name, form.name, str(variant)))
    nodes = max(situation.nodes or 0, form.nodes or 0) or None
    job = make_job(rng, nodes=nodes, most=form.most)
    stage = Stage(job, rng, form.style, form.launcher)
    culprits = situation.play(stage)
    kept = form.kept(stage)
    shows = _shown(situation, form, stage, kept, culprits)
    truth = Truth(
        situation=situation.name,
        form=form.name,
        split=split_of(situation.name, form.name),
        healthy=situation.healthy,
        symptom=situation.symptom,
        also=situation.also,
        cause=situation.cause,
        culprits=culprits if "who" in shows else (),
        true_culprits=culprits,
        fixes=situation.fixes,
        shows=tuple(sorted(shows)),
        world=job.world,
        torch=job.torch,
        nccl=job.nccl,
        parallelism=job.parallelism,
    )
    return Console(form.files(kept, stage), truth)


def _shown(situation: Situation, form: Form, stage: Stage, kept: Sequence[Line], culprits: tuple[int, ...]) -> set[str]:
    if situation.healthy:
        return set()
    told = {word for line in kept for word in line.tells}
    labels = form.labels(stage.job)
    by_words = any("who" in line.tells and (line.named or labels) for line in kept)
    told.discard("who")
    if culprits and (by_words or (situation.absence and _alone_silent(form, stage, kept, set(culprits), labels))):
        told.add("who")
    if situation.absence and "who" not in told:
        told.discard("why")
    return told | ({"what"} if "why" in told else set())


def _alone_silent(form: Form, stage: Stage, kept: Sequence[Line], culprits: set[int], labels: bool) -> bool:
    """Whether every rank that the form covers, except the culprits, is seen waiting, and the culprits' numbers are known."""
    covered = form.covers(stage)
    waiting = {line.rank for line in kept if line.rank is not None and line.waits and (line.named or labels)}
    known = labels or max(culprits) < max(waiting, default=-1)
    return culprits <= covered and covered - culprits <= waiting and len(waiting) >= 2 and known
