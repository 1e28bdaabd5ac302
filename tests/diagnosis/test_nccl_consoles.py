"""Consoles of NCCL jobs end to end: whom the watchdogs' numbers and silences accuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.zoo.consoles.cell import OPEN, make, split_of
from phalanx.zoo.consoles.form import all_forms
from phalanx.zoo.consoles.situation import all_situations


@pytest.mark.parametrize(
    ("situation", "form"),
    [
        ("rank-missing", "ray"),  # the missing rank answers a signal to dump, and its own numbers show it behind
        ("pipeline-stall", "srun-l"),  # the others wait in groups of their own
        ("rank-missing", "torchrun"),  # a console for each node
        ("other-operation", "srun-l"),
        ("cuda-out-of-memory", "srun-l-torchrun"),  # the label is the node's number
        ("ib-retry-exceeded", "kubectl-prefix"),  # nobody: the path is broken
        ("rank-missing", "rank0-only"),  # nobody: one rank's words do not tell who is missing
    ],
)
def test_the_culprit_that_the_console_shows_and_nobody_else(situation: str, form: str, tmp_path: Path) -> None:
    assert split_of(situation, form) == OPEN
    console = make(all_situations()[situation], all_forms()[form])
    verdict = diagnose_paths([str(console.write(tmp_path))]).verdict
    assert verdict is not None
    assert verdict.symptom == console.truth.symptom
    assert verdict.culprit_ranks == console.truth.culprits
