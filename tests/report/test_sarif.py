"""SARIF: the structure that the standard demands of what we write."""

from __future__ import annotations

import json
from pathlib import Path

from phalanx.lint import lint_paths
from phalanx.report import Format, render

from ..conftest import Diagnose
from ..model.test_report import OOM


def test_structure(diagnose: Diagnose) -> None:
    document = json.loads(render(diagnose(OOM), Format.SARIF))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "phalanx"
    known = {rule["id"] for rule in driver["rules"]}
    for result in run["results"]:
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        assert result.get("ruleId") is None or result["ruleId"] in known
        for location in [*result["locations"], *result["relatedLocations"]]:
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            assert " " not in physical["artifactLocation"]["uri"]
    first = run["results"][0]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "/home/user/train.py"
    assert first["properties"]["culpritRanks"] == [2]


def test_no_findings_is_an_empty_run(diagnose: Diagnose) -> None:
    document = json.loads(render(diagnose("training finished\n"), Format.SARIF))
    assert document["runs"][0]["results"] == []


def test_rules_for_scripts_are_described(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch.distributed as dist\ndist.init_process_group('gloo')\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    )
    (run,) = json.loads(render(lint_paths([str(script)]).report, Format.SARIF))["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    (result,) = run["results"]
    assert rule["id"] == result["ruleId"] == "LCM001"
    assert rule["help"]["text"]
    assert "barrier" in result["message"]["text"]
