import json

from typer.testing import CliRunner

from phalanx.cli.faults import faults_app


def _run(*words):
    return CliRunner().invoke(faults_app, ["consoles", *words])


def test_list_shows_situations_forms_and_how_many_are_held_back():
    shown = _run("list").output
    assert "rank-missing" in shown
    assert "srun-l" in shown
    assert "held back" in shown


def test_write_leaves_held_back_consoles_out_unless_asked(tmp_path):
    assert _run("write", str(tmp_path), "--situation", "duplicate-gpu").exit_code == 0
    truths = [json.loads(file.read_text()) for file in tmp_path.glob("*/*/truth.json")]
    assert truths
    assert {one["split"] for one in truths} == {"open"}
    assert _run("write", str(tmp_path), "--situation", "duplicate-gpu", "--held-back").exit_code == 0
    assert len(list(tmp_path.glob("*/*/truth.json"))) > len(truths)


def test_score_prints_totals_and_misses(tmp_path):
    done = _run("score", "--situation", "healthy", "--form", "torchrun", "--misses")
    assert done.exit_code == 0
    assert "open" in done.output


def test_an_unknown_situation_is_refused():
    assert _run("score", "--situation", "nonsense").exit_code == 2
