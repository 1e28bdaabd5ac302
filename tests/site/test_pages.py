"""The site is built from the files of the repository, without the network, and its links lead somewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from phalanx.knowledge import SYMPTOMS, load_rules
from phalanx.lint.rule import load_rules as load_lint_rules

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site built beside the repository, so that tests that run at one time do not meet."""
    root = tmp_path_factory.mktemp("clone")
    for name in ("README.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, root)
    for name in ("docs", "site"):
        shutil.copytree(ROOT / name, root / name)
    subprocess.run([sys.executable, "site/pages.py"], cwd=root, timeout=120, check=True)
    command = [sys.executable, "-m", "zensical", "build", "-s", "-f", "mkdocs.yml"]
    subprocess.run(command, cwd=root / "build", timeout=120, check=True)
    return root / "build" / "site"


def test_every_rule_and_symptom_has_its_place(site: Path) -> None:
    pages = {name: (site / "symptoms" / f"{name}.html").read_text(encoding="utf-8") for name in SYMPTOMS}
    for rule in load_rules():
        assert f"{rule.code}: " in pages[rule.symptom], rule.code
    lint = "".join(page.read_text(encoding="utf-8") for page in (site / "lint").glob("*.html"))
    for loaded in load_lint_rules():
        assert f"{loaded.rule.code}: " in lint


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    dead = []
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img)[^>]+src="https?:', text), page
        assert not re.findall(r'<link rel="stylesheet"[^>]+href="https?:', text), page
        targets = re.findall(r'href="([^"#?:]+)[#"]', text)
        dead += [(page.name, target) for target in targets if not (page.parent / unquote(target)).exists()]
    assert not dead


def test_the_search_finds_a_guide(site: Path) -> None:
    found = json.loads((site / "search.json").read_text(encoding="utf-8"))
    places = json.dumps(found)
    assert "guides/job-hangs.html" in places
    assert "My job hangs" in places
