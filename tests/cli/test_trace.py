"""`phalanx trace`: the table, the files it writes, and what it says when there is nothing to show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phalanx.cli import app

from ..made_traces import write_dumps


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job") / "dumps"
    write_dumps(folder, "host-stall")
    return folder


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    return result.exit_code, result.output


def test_the_table_folds_ranks_that_stand_alike(dumps: Path) -> None:
    _, output = run(dumps)
    assert "16 ranks, 35 groups of 7 kinds, 4,160 calls (flight recorder 2.10)" in output
    lines = output.splitlines()
    rows = [line.split()[0] for line in lines if "mappings.py" in line or "p2p_communication" in line]
    assert any(line.startswith("12 ") for line in lines)
    assert any(line.startswith("0–11 ") for line in lines)
    assert len(rows) < 16


def test_the_files_are_written(dumps: Path, tmp_path: Path) -> None:
    _, output = run(dumps, "--html", tmp_path / "a.html", "--perfetto", tmp_path / "a.json")
    assert "wrote" in output
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["traceEvents"]


def test_one_rank_and_one_kind_of_group(dumps: Path) -> None:
    _, output = run(dumps, "--rank", "13", "--group", "tensor")
    assert "calls of rank 13" in output
    assert "started" in output
    assert "PIPELINE" not in output.split("calls of rank 13")[1].split("\n\n")[0]


def test_wrong_wishes_say_what_there_is(dumps: Path, tmp_path: Path) -> None:
    status, output = run(dumps, "--group", "nonsense")
    assert status == 2
    assert "TENSOR_MODEL_PARALLEL_GROUP" in output
    status, output = run(dumps, "--rank", "99")
    assert status == 2
    assert "there are ranks 0–15" in output
    status, output = run(tmp_path / "nowhere")
    assert status == 2
    assert "no such file or folder" in output
    status, output = run(dumps, "--html", tmp_path / "no" / "such" / "folder.html")
    assert status == 2
    assert "cannot write" in output


def test_a_folder_without_traces_says_how_to_make_them(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("step 1\n", encoding="utf-8")
    status, output = run(tmp_path)
    assert status == 2
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" in output
