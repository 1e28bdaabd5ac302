"""`python -m phalanx.study DIR`: recompute the study's figures, compare with or write the shipped file."""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from phalanx.study.errors import StudyError
from phalanx.study.figures import (
    SHEET_FILE,
    SHIPPED_FILE,
    Figures,
    compute_figures,
    render_figures,
)

SAME, DIFFERENT, FAILED = 0, 1, 2
_SHOWN_LINES = 40


def main(arguments: Sequence[str] | None = None, shipped_file: Path = SHIPPED_FILE) -> int:
    """Run the command and return its exit status: 0 same or written, 1 different, 2 could not be done."""
    options = _build_parser().parse_args(arguments)
    try:
        figures = compute_figures(options.directory)
        text = render_figures(figures)
        if options.write:
            return _write(text, figures, shipped_file)
        return _check(text, figures, shipped_file)
    except StudyError as error:
        print(f"phalanx.study: {error}", file=sys.stderr)
        return FAILED


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m phalanx.study",
        description="Recompute the study's figures from the authors' files.",
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help=f"the folder that holds {SHEET_FILE}")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="compare with the shipped figures (the default)")
    action.add_argument("--write", action="store_true", help="replace the shipped figures")
    return parser


def _check(text: str, figures: Figures, shipped_file: Path) -> int:
    try:
        shipped = shipped_file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"{shipped_file}: no shipped figures to compare with. Write them with --write.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{shipped_file}: cannot be read ({error}).") from error
    if shipped == text:
        print(f"The shipped figures are those of the sheet: {_summarise(figures)}.")
        return SAME
    difference = list(
        difflib.unified_diff(shipped.splitlines(), text.splitlines(), "shipped", "recomputed", n=1, lineterm="")
    )
    print("\n".join(difference[:_SHOWN_LINES]))
    if len(difference) > _SHOWN_LINES:
        print(f"… and {len(difference) - _SHOWN_LINES} more lines")
    print("The shipped figures differ from the sheet. Replace them with --write.", file=sys.stderr)
    return DIFFERENT


def _write(text: str, figures: Figures, shipped_file: Path) -> int:
    try:
        shipped_file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StudyError(f"{shipped_file}: cannot be written ({error.strerror}).") from error
    print(f"Wrote {shipped_file}: {_summarise(figures)}.")
    return SAME


def _summarise(figures: Figures) -> str:
    return (
        f"{figures.faults} faults, {figures.how_to_questions} how-to questions, "
        f"{len(figures.symptoms)} symptoms, "
        f"{figures.distributed_specific} faults specific to distributed training, "
        f"{figures.configuration_share:.1%} cured in the configuration"
    )


if __name__ == "__main__":
    sys.exit(main())
