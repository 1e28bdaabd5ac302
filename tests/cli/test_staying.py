"""Staying with a job: hangs and recoveries are sent, and where ranks are is exported."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from phalanx.attaching.groups import StackGroup
from phalanx.attaching.jobs import AttachError
from phalanx.cli import staying
from phalanx.cli.staying import Watcher, stay
from phalanx.notify.outlets import Outlets


def _seen(hangs: bool) -> Any:
    return SimpleNamespace(hangs=hangs, motion=None, quiet=12.0, evidence=())


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [StackGroup((0, 2), (), "collective", "", None), StackGroup((1,), (), "elsewhere", "", None)]
    monkeypatch.setattr("phalanx.attaching.groups.grouped_stacks", lambda motion: found)


def test_figures_follow_the_job(tmp_path: Path, groups: None) -> None:
    outlets = Outlets("train.py", "", lambda text: None, metrics=str(tmp_path / "job.prom"))
    assert outlets.metrics is not None
    now = [100.0]
    watcher = Watcher(lambda text: None, lambda seen: None, outlets, clock=lambda: now[0])
    watcher.noted(_seen(hangs=True))
    now[0] = 130.0
    watcher.noted(_seen(hangs=True))
    shown = outlets.metrics.text()
    assert 'phalanx_stalled{job="train.py"} 1' in shown
    assert 'phalanx_rank_phase{job="train.py",rank="1",phase="elsewhere"} 1' in shown
    assert 'phalanx_rank_seconds_since_progress{job="train.py",rank="0"} 42' in shown
    watcher.noted(_seen(hangs=False))
    assert 'phalanx_rank_seconds_since_progress{job="train.py",rank="0"} 0' in outlets.metrics.text()


def test_a_hang_and_its_end_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = tmp_path / "sent"
    report = {"verdict": {"headline": "Rank 1 never joined", "summary": "x"}}
    monkeypatch.setattr(staying, "_verdict", lambda seen, say: (report, "text"))
    said: list[str] = []
    outlets = Outlets("train.py", "", said.append, notify=[f"cmd:echo $PHALANX_HEADLINE >> {sent}"])
    watcher = Watcher(said.append, lambda seen: said.append("shown"), outlets)
    watcher.hung(_seen(hangs=True))
    outlets.close()
    watcher.recovered(_seen(hangs=False))
    outlets.close()
    assert sent.read_text().splitlines() == ["Rank 1 never joined", "the job goes on"]
    assert said == ["shown", "the job goes on"]


def test_a_channel_that_cannot_be_used_is_told_at_once() -> None:
    target: Any = SimpleNamespace(job=SimpleNamespace(script="train.py"))
    with pytest.raises(AttachError):
        stay(target, 1.0, lambda text: None, lambda seen: None, notify=["nonsense"])
