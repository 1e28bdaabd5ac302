"""The manifests that we ship are what Kubernetes takes, and call commands that there are."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MANIFEST = ROOT / "deploy" / "kubernetes" / "sidecar.yaml"


@pytest.mark.parametrize("version", ["1.29", "1.31", "1.33"])
def test_the_manifest_is_valid(version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate: pip install '.[dev]'")
    yaml = pytest.importorskip("yaml", reason="needs pyyaml: pip install pyyaml")
    (document,) = yaml.safe_load_all(MANIFEST.read_text())
    validate.validate(document, version, strict=True)
    broken = copy.deepcopy(document)
    broken["spec"]["template"]["spec"]["initContainers"][0]["comand"] = ["x"]
    with pytest.raises(validate.ValidationError):
        validate.validate(broken, version, strict=True)


@pytest.mark.parametrize("verb", ["check", "attach"])
def test_its_options_exist(verb: str) -> None:
    lines = [line for line in MANIFEST.read_text().splitlines() if f"phalanx {verb} " in line]
    options = {option for line in lines for option in re.findall(r"(?<= )--[a-z-]+", line.partition("command:")[2])}
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", verb, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "200", "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"},
    )
    assert options
    for option in options:
        assert option in done.stdout, option
