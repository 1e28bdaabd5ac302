"""What is published works where nothing else of this repository is: the wheel in a clean environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.model.test_report_json import CRASH

ROOT = Path(__file__).parent.parent


def run(*words: str | Path, cwd: Path, status: int = 0) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a clean environment with the wheel in it and nothing else."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    run(sys.executable, "-m", "venv", folder, cwd=built)
    wheel = next(built.glob("*.whl"))
    run(folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=built)
    return folder / "bin"


def test_the_wheel_has_the_package_and_the_sdist_its_tests(built: Path) -> None:
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    assert {"phalanx/py.typed", "phalanx/report/templates/report.html"} <= set(names)
    assert any(name.startswith("phalanx/knowledge/rules/") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "faults/", "bench/"))]
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        inside = archive.getnames()
    assert any(name.endswith("/pyproject.toml") for name in inside)
    assert not [name for name in inside if "/.venv/" in name or "/.zoo/" in name]


def test_a_diagnosis_a_run_and_completion(installed: Path, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(CRASH)
    assert "Rank 1 raised KeyError: 'labels'" in run(installed / "phalanx", "diagnose", log, cwd=tmp_path, status=1)
    script = tmp_path / "train.py"
    script.write_text("import os\nprint('rank', os.environ['RANK'])\n")
    said = run(installed / "phalanx", "run", "-n", "2", script, cwd=tmp_path)
    assert {"rank 0", "rank 1"} <= set(re.findall(r"rank \d", said))
    # Not by --show-completion: it asks for the shell that started it, and under a build server there is none.
    asked = {**os.environ, "_PHALANX_COMPLETE": "source_bash"}
    shown = subprocess.run([installed / "phalanx"], env=asked, capture_output=True, text=True, timeout=60, check=False)
    assert "complete" in shown.stdout, shown.stderr


def test_an_extra_that_is_missing_explains_itself(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [installed / "phalanx", "mcp"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "pip install 'phalanx-training[mcp]'" in done.stderr


def test_the_import_is_quick(installed: Path, tmp_path: Path) -> None:
    """Every rank imports it. The best of several: another process may have had the core."""
    code = "import time; t = time.perf_counter(); import phalanx; print(time.perf_counter() - t)"
    seconds = [float(run(installed / "python", "-c", code, cwd=tmp_path)) for _ in range(5)]
    assert min(seconds) < 0.05


def test_it_leaves_nothing_behind(installed: Path, tmp_path: Path) -> None:
    """Last in this file: what pip installed, pip takes away."""
    site = Path(run(installed / "python", "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path).strip())
    assert (site / "phalanx").is_dir()
    run(installed / "pip", "uninstall", "-q", "-y", "phalanx-training", cwd=tmp_path)
    assert not [path.name for path in site.glob("*phalanx*") if path.is_file() or any(path.rglob("*.py"))]
