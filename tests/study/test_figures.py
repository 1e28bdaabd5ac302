"""The study's figures: the shipped file says what the study's table says, and the sheet gives that file."""

import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from phalanx.study.__main__ import main
from phalanx.study.errors import StudyError
from phalanx.study.figures import (
    SHEET_FILE,
    SHIPPED_FILE,
    compute_figures,
    fold_rows,
    render_figures,
)
from phalanx.study.labels import FIX_PATTERNS

# Symptom, faults, distributed-specific faults; below it the sheet's most frequent fixes, in order.
STUDY_TABLE = """
build.install-failure 51 50
  14 fix dependency version, 9 fix build/install configuration, 7 install missing dependency,
  6 fix dependency path, 5 change hardware
build.import-error 31 31
  6 fix dependency path, 6 fix dependency version, 4 fix framework version, 3 fix dependency installation,
  2 fix consistency between devices
comm.setup-failure 85 85
  29 fix communication configuration, 16 fix network setting, 9 fix dependency version,
  5 fix device assignment, 5 fix distributed api usage
comm.hang-timeout 44 44
  14 fix communication configuration, 5 fix network setting, 5 fix consistency between devices,
  5 fix dependency version, 2 fix framework version
comm.unexpected-protocol 4 4
  1 fix dependency version, 1 fix network setting, 1 install missing dependency,
  1 fix communication configuration
prep.model-loading-failure 12 12
  3 fix distributed api usage, 2 fix framework version, 1 fix behavior logic, 1 fix dependency version,
  1 use the first layer of the model
prep.data-loading-failure 8 5
  2 fix dataset, 2 fix distributed api usage, 1 fix dependency version,
  1 use spawn mode in multiprocessing, 1 fix dependency library usage
prep.communication-error 7 7
  2 fix communication configuration, 2 fix distributed api usage, 2 fix framework version,
  1 fix build/install configuration
prep.hang-timeout 7 7
  3 fix communication configuration, 1 fix memory/core setting, 1 fix framework version,
  1 fix network setting, 1 fix data type
prep.device-error 6 6
  4 fix device assignment, 1 fix framework version, 1 fix distributed api usage
prep.iteration-failure 5 4
  1 fix communication configuration, 1 fix distributed api usage, 1 fix data partition/batch size,
  1 fix device assignment, 1 fix dataset api usage
prep.other 12 5
  2 fix dataset download, 2 fix batch size/data partition, 1 fix framework version,
  1 fix memory/core setting, 1 fix data path
fail.communication-error 38 38
  12 fix distributed api usage, 4 fix communication configuration, 3 fix model construction,
  3 fix behavior logic, 3 fix framework version
fail.device-error 28 26
  8 fix device assignment, 3 fix distributed api usage, 2 fix communication configuration,
  2 fix dependency version & fix memory/core setting, 2 fix behavior logic
fail.graph-execution-error 25 20
  5 fix distributed api usage, 4 fix dependency version, 3 fix model construction, 2 fix scope assignment,
  2 fix data type
fail.tensor-mismatch 25 9
  4 fix model construction, 3 fix loss function, 3 fix data type, 2 fix framework version,
  2 fix tensor api usage
fail.out-of-memory 21 21
  6 fix memory/core setting, 5 fix batch size/data partition, 2 fix dependency version,
  2 kill useless processes on servers, 2 fix device assignment
fail.checkpoint-unusable 21 21
  17 save single-device model/weights only, 2 fix behavior logic, 1 disable checkpoint callback,
  1 fix framework version
fail.segmentation-fault 16 15
  7 fix dependency version, 3 fix framework version, 2 fix build/install configuration,
  1 fix package import, 1 reinstall framework in a fresh environment
fail.attribute-not-found 13 8
  3 fix framework version, 3 fix distributed api usage, 1 fix package name, 1 fix dependency version,
  1 fix framework installation
fail.memory-issue 7 5
  2 fix memory/core setting, 1 fix dependency version, 1 fix hardware-accelerated gpu scheduling,
  1 fix inference api usage, 1 fix model construction
fail.path-error 6 5
  3 fix consistency between devices, 1 fix command line, 1 fix distributed api usage, 1 fix dependency path
fail.not-implemented 5 5
  2 fix distributed api usage, 2 fix framework version, 1 fix dependency version
fail.other 10 5
  2 fix dependency version, 2 fix framework version, 2 fix distributed api usage, 1 fix evaluate generator,
  1 fix tensor intialization api usage
perf.hang 44 44
  11 fix communication configuration, 6 fix dependency version, 5 fix behavior logic,
  4 fix consistency between devices, 3 fix batch size/data partition
perf.unexpected-parallelization-or-device 36 33
  12 fix device assignment, 5 fix distributed api usage, 4 fix dependency version,
  4 fix model construction, 2 fix behavior logic
perf.low-efficiency 35 29
  5 fix batch size/data partition, 4 fix communication configuration, 4 change hardware,
  4 fix model construction, 3 fix distributed api usage
perf.unexpected-intermediate-result 21 16
  3 fix distributed api usage, 3 fix behavior logic, 3 fix model construction, 2 fix tensor api usage,
  1 fix learning rate
perf.non-convergence 9 5
  3 fix learning rate, 1 save single-device model/weights only, 1 fix framework version,
  1 fix package import, 1 fix batch size/data partition/learning rate
perf.other 5 4
  1 fix dependency path, 1 fix behavior logic, 1 fix distributed api usage, 1 use tmux,
  1 fix dataset api usage
"""

FAULT_HEADER = (
    "Type",
    "Link",
    "distributed-specific",
    "stage",
    "inner-category",
    "leaf category",
    "fix pattern",
)
HOW_TO_HEADER = ("Type", "Link", "how-to topic", "sub-topic")
SETUP = ("communication setup", None, "setup failure")


def parse_study_table() -> dict[str, tuple[int, int, list[tuple[str, int]]]]:
    table: dict[str, tuple[int, int, list[tuple[str, int]]]] = {}
    for line in STUDY_TABLE.strip().splitlines():
        if not line.startswith(" "):
            symptom, faults, specific = line.split()
            table[symptom] = (int(faults), int(specific), [])
        else:
            for item in line.strip().rstrip(",").split(", "):
                count, _, label = item.partition(" ")
                table[symptom][2].append((label, int(count)))
    return table


EXPECTED = parse_study_table()


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(SHIPPED_FILE.read_text(encoding="utf-8"))
    return document


def write_workbook(
    directory: Path,
    faults: Sequence[Sequence[object]],
    how_to: Sequence[Sequence[object]] = (),
    header: Sequence[str] = FAULT_HEADER,
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="writing a sheet needs the extra `study`")
    workbook = openpyxl.Workbook()
    workbook.active.title = "faults"
    for row in (header, *faults):
        workbook["faults"].append(row)
    workbook.create_sheet("how-to questions")
    for row in (HOW_TO_HEADER, *how_to):
        workbook["how-to questions"].append(row)
    workbook.save(directory / SHEET_FILE)


# The shipped file


def test_the_shipped_totals_are_those_of_the_study(shipped: dict[str, Any]) -> None:
    assert shipped["schema"] == "phalanx.figures/1"
    totals = shipped["totals"]
    assert (totals["faults"], totals["how_to_questions"], totals["issues"]) == (637, 494, 1131)
    assert totals["distributed_specific"] == 569
    assert (totals["symptoms"], totals["mixed_symptoms"]) == (30, 17)
    assert totals["cured_in_configuration"] == 329
    assert f"{shipped['configuration_share']:.1%}" == "51.6%"


def test_the_study_table_has_all_symptoms_of_the_shipped_file(shipped: dict[str, Any]) -> None:
    assert len(EXPECTED) == 30
    assert set(shipped["symptoms"]) == set(EXPECTED)


@pytest.mark.parametrize("symptom", EXPECTED)
def test_the_shipped_file_reproduces_the_row_of_the_study_table(symptom: str, shipped: dict[str, Any]) -> None:
    faults, specific, labels = EXPECTED[symptom]
    row = shipped["symptoms"][symptom]
    assert (row["faults"], row["distributed_specific"]) == (faults, specific)
    assert [(top["label"], top["count"]) for top in row["top_labels"]] == labels


def test_the_shipped_counts_add_up(shipped: dict[str, Any]) -> None:
    by_pattern = dict.fromkeys(FIX_PATTERNS, 0)
    by_framework: dict[str, int] = {}
    for row in shipped["symptoms"].values():
        assert sum(row["fixes"].values()) == row["faults"]
        assert sum(part["faults"] for part in row["by_framework"].values()) == row["faults"]
        for framework, part in row["by_framework"].items():
            assert sum(part["fixes"].values()) == part["faults"]
            by_framework[framework] = by_framework.get(framework, 0) + part["faults"]
        for pattern, count in row["fixes"].items():
            by_pattern[pattern] += count
    assert by_framework == shipped["totals"]["by_framework"]
    assert sum(by_framework.values()) == 637
    assert {pattern: fix["count"] for pattern, fix in shipped["fixes"].items()} == by_pattern
    for fix in shipped["fixes"].values():
        assert sum(fix["by_framework"].values()) == fix["count"]


def test_the_frequent_fix_of_finding_2_is_shipped(shipped: dict[str, Any]) -> None:
    assert shipped["symptoms"]["fail.checkpoint-unusable"]["fixes"]["save-single-device-weights-only"] == 17


def test_no_link_of_the_data_is_shipped() -> None:
    text = SHIPPED_FILE.read_text(encoding="utf-8")
    assert "://" not in text
    assert "stackoverflow" not in text.lower()


# The authors' sheet


def test_the_sheet_gives_exactly_the_shipped_file(study: Path) -> None:
    assert render_figures(compute_figures(study)) == SHIPPED_FILE.read_text(encoding="utf-8")


def test_the_sheet_gives_the_totals_and_every_row_of_the_study_table(study: Path) -> None:
    figures = compute_figures(study)
    assert (figures.faults, figures.how_to_questions, figures.issues) == (637, 494, 1131)
    assert (figures.distributed_specific, figures.mixed_symptoms) == (569, 17)
    assert f"{figures.configuration_share:.1%}" == "51.6%"
    counted = {
        name: (row.faults, row.distributed_specific, list(row.top_labels)) for name, row in figures.symptoms.items()
    }
    assert counted == EXPECTED


def test_check_finds_the_shipped_file_true_and_a_changed_one_false(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(study), "--check"]) == 0
    changed = tmp_path / "figures.json"
    changed.write_text(SHIPPED_FILE.read_text(encoding="utf-8").replace('"faults": 637', '"faults": 636'))
    assert main([str(study)], shipped_file=changed) == 1
    assert '-  "faults": 636,\n+  "faults": 637,' in capsys.readouterr().out
    assert main([str(study), "--write"], shipped_file=changed) == 0
    assert changed.read_bytes() == SHIPPED_FILE.read_bytes()


# Sheets made here


def test_a_row_without_a_link_takes_the_type_of_the_issue_above(tmp_path: Path) -> None:
    rows = [
        ("SO-pytorch", "a", 1, *SETUP, "fix network setting"),
        (None, None, 0, *SETUP, "use tmux & fix dependency path"),
        ("GitHub-keras", "b", 1, *SETUP, "fix network setting"),
        (None, None, None, None, None, None, None),
    ]
    write_workbook(tmp_path, rows, how_to=[("SO-keras", "c", "model", None), (None, None, "model", None)])
    figures = compute_figures(tmp_path)
    assert (figures.faults, figures.how_to_questions) == (3, 2)
    setup = figures.symptoms["comm.setup-failure"]
    assert (setup.faults, setup.distributed_specific, setup.mixed) == (3, 2, True)
    assert setup.by_framework["torch"].fixes == {"fix-network-setting": 1, "other": 1}
    assert setup.by_framework["keras"].faults == 1
    # The joined cell counts as the first it names, yet its cure did touch the configuration.
    assert figures.fixes["fix-dependency-path"].count == 0
    assert figures.cured_in_configuration == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((None, None, 1, *SETUP, "change hardware"), "row 2: no link"),
        (("SO-keras", "a", None, *SETUP, "change hardware"), "row 2: distributed-specific is None"),
        (("SO-keras", "a", 1, "communication setup", None, "fire", "change hardware"), "row 2: .*'fire'"),
        (("SO-keras", "a", 1, *SETUP, None), "row 2: a fault without a fix pattern"),
    ],
)
def test_a_row_that_cannot_be_folded_is_named(row: Sequence[Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        fold_rows([row])


def test_other_columns_than_the_studys_are_refused(tmp_path: Path) -> None:
    write_workbook(tmp_path, [], header=("kind", *FAULT_HEADER[1:]))
    with pytest.raises(StudyError, match="sheet 'faults': expected the columns"):
        compute_figures(tmp_path)


def test_a_folder_without_the_sheet_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert f"{tmp_path / SHEET_FILE}: no such file. Give the folder" in capsys.readouterr().err


def test_a_missing_openpyxl_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / SHEET_FILE).write_bytes(b"")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert main([str(tmp_path), "--check"]) == 2
    assert "pip install 'phalanx-training[study]'" in capsys.readouterr().err


def test_a_file_that_is_no_workbook_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openpyxl", reason="reading the sheet needs the extra `study`")
    (tmp_path / SHEET_FILE).write_bytes(b"not a zip file")
    assert main([str(tmp_path)]) == 2
    assert "not a readable Excel workbook" in capsys.readouterr().err


def test_a_workbook_damaged_inside_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_workbook(tmp_path, [("SO-keras", "a", 1, *SETUP, "change hardware")])
    with zipfile.ZipFile(tmp_path / SHEET_FILE) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(tmp_path / SHEET_FILE, "w") as damaged:
        for name, content in parts.items():
            damaged.writestr(name, content[: len(content) // 2] if "sheet1" in name else content)
    assert main([str(tmp_path)]) == 2
    assert "the workbook is damaged" in capsys.readouterr().err
