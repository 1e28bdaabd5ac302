"""What must not stand in the repository: traces of the machine it was written on, and claims that are not so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from phalanx.knowledge import load_rules

ROOT = Path(__file__).parent.parent


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    found = [ROOT / name for name in done.stdout.split("\0") if name]
    assert Path(__file__) in found
    return found


def test_no_trace_of_a_machine() -> None:
    words = re.compile(r"(?<![\w.-])/(?:root|wor" r"k)/|pyen" r"v/versions|pypi\.or" r"g|pythonhoste" r"d\.org")
    for path in tracked():
        if path.suffix in (".gz", ".png") or path == Path(__file__):
            continue
        found = words.search(path.read_text(encoding="utf-8", errors="replace"))
        assert found is None or path.name == "test_folders.py", f"{path.relative_to(ROOT)}: {found and found[0]}"


def test_the_readme_counts_the_rules_rightly() -> None:
    stated = re.search(
        r"more than (\d+) rules, each one Markdown file", (ROOT / "README.md").read_text(encoding="utf-8")
    )
    assert stated is not None
    assert int(stated[1]) < len(load_rules()) <= int(stated[1]) + 100


def test_modules_stay_small() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 320, path


def test_the_lock_names_every_dependency_with_hashes() -> None:
    locked = (ROOT / "requirements.lock").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    core = project.partition("dependencies = [")[2].partition("]")[0]
    for name in re.findall(r'"([a-z0-9-]+)', core):
        assert re.search(rf"^{re.escape(name)}==\S+ \\\n    --hash=sha256:[0-9a-f]{{64}}", locked, re.M), name
