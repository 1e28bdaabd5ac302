"""Writes the pages of the site to build/pages: the documents as they are, and a page for each symptom and lint group.

python site/pages.py            (make site also makes the site of them)
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from phalanx.cli.rule_text import text_of_rule
from phalanx.knowledge import SYMPTOMS, load_rules
from phalanx.lint.rule import load_rules as load_lint_rules

ROOT = Path(__file__).parent.parent
OUT = ROOT / "build"
_HEADING = re.compile(r"^(#+) ", re.M)
# Links of the README and of documents to files that are no page of the site: they name the file, and lead nowhere.
_LINK = re.compile(r"\[([^\]]+)\]\(((?!https?:|#)[^)\s]+)\)")
_GROUPS = {
    "The verbs": [
        "run",
        "watch",
        "attach",
        "check",
        "lint",
        "verify",
        "verify-runs",
        "checkpoints",
        "traces",
        "replay",
        "function",
        "engines",
        "python",
    ],
    "Where people work": ["variable", "inside", "callbacks", "notify", "slurm", "kubernetes"],
    "Behind it": [
        "accuracy",
        "zoo",
        "zoo-coverage",
        "zoo-silent",
        "consoles",
        "lab",
        "study",
        "security",
        "design",
        "rules",
        "dependencies",
    ],
}


def main() -> int:
    """Write everything; the exit status."""
    pages = OUT / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    (pages / "index.md").write_text(_without_dead_links(readme, pages), encoding="utf-8")
    symptoms = list(_symptom_pages(pages))
    lints = list(_lint_pages(pages))
    for page in pages.rglob("*.md"):
        page.write_text(_without_dead_links(page.read_text(encoding="utf-8"), page.parent), encoding="utf-8")
    _write_settings(pages, symptoms, lints)
    print(f"{len(list(pages.rglob('*.md')))} pages in {pages.relative_to(ROOT)}")
    return 0


def _symptom_pages(pages: Path) -> Iterator[dict[str, str]]:
    """One page a symptom, with all of its rules below."""
    rules = load_rules()
    for name, symptom in SYMPTOMS.items():
        own = sorted((rule for rule in rules if rule.symptom == name), key=lambda rule: rule.code)
        parts = [
            f"# {name}",
            f"{symptom.looks_like[:1].upper()}{symptom.looks_like[1:]}.",
            f"{len(own)} rules of `phalanx diagnose` know it.",
        ]
        parts += [_one_deeper(text_of_rule(rule.code) or "") for rule in own]
        target = pages / "symptoms" / f"{name}.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        yield {name: f"symptoms/{name}.md"}


def _lint_pages(pages: Path) -> Iterator[dict[str, str]]:
    """One page for each group of the rules that read scripts."""
    rules = load_lint_rules()
    for group in dict.fromkeys(loaded.group for loaded in rules):
        own = [loaded for loaded in rules if loaded.group == group]
        parts = [f"# Rules of `phalanx check train.py`: {group}"]
        parts += [_one_deeper(text_of_rule(loaded.rule.code) or "") for loaded in own]
        target = pages / "lint" / f"{group}.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        yield {group: f"lint/{group}.md"}


def _one_deeper(text: str) -> str:
    """The headings of a page as those of a section; lines of code that begin with a hash stay."""
    parts = text.split("```")
    parts[::2] = [_HEADING.sub(r"#\1 ", part) for part in parts[::2]]
    return "```".join(parts)


def _without_dead_links(text: str, folder: Path) -> str:
    def replace(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        return match[0] if (folder / target).exists() else f"{match[1]}"

    return _LINK.sub(replace, text)


def _write_settings(pages: Path, symptoms: list[dict[str, str]], lints: list[dict[str, str]]) -> None:
    """mkdocs.yml with the navigation of what was written: a new document needs no entry anywhere."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"docs_dir": "pages", "site_dir": "site"}
    there = {page.stem for page in pages.glob("*.md")} - {"index"}
    named = {name for names in _GROUPS.values() for name in names}
    for title, names in _GROUPS.items():
        listed = [name for name in names if name in there]
        if title == "Behind it":
            listed += sorted(there - named - {"lint-rules"})
        if listed:
            settings["nav"].append({title: [f"{name}.md" for name in listed]})
    settings["nav"] += [{"Symptoms and their rules": symptoms}, {"Rules for scripts": lints}]
    (OUT / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
