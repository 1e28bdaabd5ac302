"""Runs the analysis of scripts over the fault zoo: what it finds in broken scripts, cured twins and healthy jobs.

    python bench/lint_zoo.py             # scores of both splits
    python bench/lint_zoo.py --list      # single faults of the train split; those of the test split are never shown

A fault counts as found if its script has a finding that its cured twin does not have. Not every fault is visible in a
script (a killed process, a wrong variable); `in scope` counts those whose cause some rule names.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from pathlib import Path

from phalanx.lint import lint_paths
from phalanx.lint.rule import load_rules

ZOO = Path(__file__).parent.parent / "faults"


def findings(path: Path) -> Counter[str]:
    """How often each rule fires."""
    return Counter(str(finding.rule) for finding in lint_paths([str(path)]).report.findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the faults of the train split")
    wanted = parser.parse_args()
    causes = {loaded.rule.cause for loaded in load_rules()}
    for split in ("train", "test"):
        score: Counter[str] = Counter()
        for folder in sorted(ZOO.iterdir()):
            script = folder / "train.py"
            if not script.is_file():
                continue
            fault = tomllib.loads((folder / "fault.toml").read_text())
            if fault["split"] == split:
                line = judge(folder, fault, causes, score)
                if wanted.list and split == "train" and line:
                    print(line)
        alarms = ", ".join(f"{key[6:]} × {count}" for key, count in sorted(score.items()) if key.startswith("alarm "))
        print(
            f"{split}: {score['found']} of {score['twins']} faults with a cured twin found; "
            f"in scope {score['found in scope']} of {score['in scope']}; "
            f"false alarms: {score['false cured']} of {score['twins']} cured twins, "
            f"{score['false healthy']} of {score['healthy']} healthy jobs ({alarms or 'no rule'})"
        )


def judge(folder: Path, fault: dict[str, object], causes: set[str], score: Counter[str]) -> str:
    """Count one folder; the line that `--list` shows."""
    bad = findings(folder / "train.py")
    if fault["healthy"]:
        score["healthy"] += 1
        score["false healthy"] += bool(bad)
        score.update(f"alarm {code}" for code in bad)
        return f"ALARM  {folder.name}: {dict(bad)} in a healthy job" if bad else ""
    if not (folder / "cured.py").is_file():
        return f"other  {folder.name}: {dict(bad)}" if bad else ""
    good = findings(folder / "cured.py")
    is_found, in_scope = bool(bad - good), fault["cause"] in causes
    score["twins"] += 1
    score["found"] += is_found
    score["in scope"] += in_scope
    score["found in scope"] += is_found and in_scope
    score["false cured"] += bool(good)
    score.update(f"alarm {code}" for code in good)
    if good:
        return f"ALARM  {folder.name}: {dict(good)} in the cured twin"
    return (
        f"{'found ' if is_found else 'missed' if in_scope else 'silent'} {folder.name} ({fault['cause']}): {dict(bad)}"
    )


if __name__ == "__main__":
    main()
