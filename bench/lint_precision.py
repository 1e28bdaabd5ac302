"""Findings of the analysis of scripts in public code, to be read one by one: how many there are, and where.

    python bench/lint_precision.py FOLDER…        # unpacked packages or checkouts; one row of the table for each
    python bench/lint_precision.py FOLDER --list  # with every finding: file, line, code, sentence, source line

Whether a finding is right is for a person to say; `docs/lint.md` has the table with that column.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from phalanx.lint import lint_paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="print every finding")
    wanted = parser.parse_args()
    print("| source | lines | findings | per 1,000 lines | not read |\n|---|---|---|---|---|")
    for folder in wanted.folders:
        checked = lint_paths([str(folder)])
        findings = checked.report.findings
        rate = 1000 * len(findings) / checked.relevant if checked.relevant else 0
        unread = len(checked.report.not_checked)
        print(f"| {folder.name} | {checked.relevant:,} | {len(findings)} | {rate:.2f} | {unread} |")
        for finding in findings if wanted.list else ():
            root = finding.evidence[0]
            print(f"  {root.file}:{root.line}: {finding.rule} {finding.title}\n      {root.text}")


if __name__ == "__main__":
    main()
