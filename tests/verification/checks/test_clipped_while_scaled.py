"""Clipping before the loss scale is taken off."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.clipped_while_scaled import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import Job

CLIP: list[Any] = ["clip", {"line": "train.py:18", "most": 1.0, "norm": 3.0}]
UNSCALED: list[Any] = ["unscaled", {}]


def stepped(*events: list[Any]) -> Evidence:
    return Job(events=lambda rank, step: [["backward", {}], *events]).evidence


def scaler(scale: float = 1024.0) -> list[Any]:
    return ["scaler", {"scale": scale}]


def test_the_clip_comes_first() -> None:
    (found,) = check(stepped(CLIP, scaler(), UNSCALED))
    assert "clipped at train.py:18 while they are still multiplied by the loss scale (1024)" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(stepped(UNSCALED, CLIP, scaler())))
    assert not list(check(stepped(CLIP))), "no scaler"
    assert not list(check(stepped(CLIP, scaler(1.0)))), "a scale of one changes nothing"
