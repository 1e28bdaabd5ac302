"""Replays in the debugger: where they stop, and what can be looked at there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .jobs import record, replay
from .test_divergence import copied, prepare

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepare(tmp_path_factory.mktemp("failed"))
    done = record(folder, "full", 2, "raises")
    assert done.status == 1
    assert "--rank 1" in done.err  # the command to see it again names who raised
    return folder


def test_a_break_stops_in_the_users_line_at_its_step(failed: Path) -> None:
    again = replay(failed, "bundle", "--rank", "1", "--break", "step==3", typed="p ('here', step, kind)\nc\n")
    assert "('here', 3, 'raises')" in again.out or "('here', 2, 'raises')" in again.out, again.out + again.err
    assert again.out.count("('here'") == 1  # once: it stays true for a while
    assert "the condition holds: step=3" in again.err
    assert again.status == 0


def test_who_leaves_the_debugger_has_found_no_difference(failed: Path) -> None:
    again = replay(failed, "bundle", "--rank", "1", "--break", "step==3", typed="q\n")
    assert "BdbQuit" not in again.out + again.err
    assert "[same, bitwise]" in again.out, again.out + again.err
    assert again.status == 0


def test_a_break_can_ask_for_a_call(failed: Path) -> None:
    again = replay(
        failed, "bundle", "--rank", "1", "--break", "op=='allreduce_' and step==2", typed="p 'at', step\nc\n"
    )
    assert "op='allreduce_'" in again.err
    assert "('at', 2)" in again.out, again.out


def test_a_break_that_is_no_expression_is_refused(failed: Path) -> None:
    again = replay(failed, "bundle", "--rank", "1", "--break", "step=3")
    assert again.status == 2
    assert "not a Python expression" in again.err


def test_the_debugger_stops_where_the_script_fails(failed: Path) -> None:
    again = replay(failed, "bundle", "--rank", "1", "--pdb", typed="p ('failed at', step, tuple(batch.shape))\nq\n")
    assert "('failed at', 6, (8, 16))" in again.out, again.out + again.err
    assert "[repeats, bitwise]" in again.out


def test_the_debugger_stops_at_the_first_difference(failed: Path, tmp_path: Path) -> None:
    folder = copied(failed, tmp_path)
    script = folder / "train.py"
    script.write_text(script.read_text().replace("lr=0.01", "lr=0.02"))
    again = replay(folder, "bundle", "--rank", "1", "--pdb", typed="p ('parted at', step)\nc\nc\nc\nq\n")
    assert "first difference" in again.err
    assert "('parted at', 1)" in again.out, again.out + again.err
    assert again.status == 1


def test_the_debugger_stops_where_the_recording_ends(failed: Path) -> None:
    victim = replay(failed, "bundle", "--rank", "0", "--pdb", typed="p ('waits at', step)\nc\n")
    assert "never completed" in victim.err, victim.out + victim.err
    assert "('waits at', 6)" in victim.out, victim.out + victim.err
