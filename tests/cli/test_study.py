"""`phalanx study` at the command line: every command is there, and what is wrong is one line, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from phalanx.cli import app

COMMANDS = ("reproduce", "collect", "train", "classify", "label", "drift")


def test_every_command_is_listed_and_has_help() -> None:
    runner = CliRunner()
    listing = runner.invoke(app, ["study", "--help"]).output
    for command in COMMANDS:
        assert command in listing
        assert runner.invoke(app, ["study", command, "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reproduce", "nothing"], "no such folder"),
        (["collect"], "name a preset"),
        (["collect", "nothing"], "there is no preset"),
        (["collect", "--repo", "x"], "OWNER/NAME"),
        (["collect", "stackoverflow", "--dump", "nothing.xml"], "cannot be read"),
        (["collect", "stackoverflow", "--dump", "nothing.xml", "--on", "moon"], "no engine 'moon'"),
        (["train", "nothing.csv"], "cannot be read"),
        (["classify", "nothing.csv"], "cannot be read"),
        (["label", "nothing.csv"], "cannot be read"),
        (["drift", "nothing.csv"], "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["study", *arguments])
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_the_presets_are_listed() -> None:
    done = CliRunner().invoke(app, ["study", "collect", "--list"])
    assert done.exit_code == 0
    assert "horovod/horovod" in done.output
