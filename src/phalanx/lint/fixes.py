"""Applies the safe repairs that rules offer, and shows them as a diff."""

from __future__ import annotations

import difflib
from pathlib import Path

from phalanx.lint.rule import Edit, Hit


def repaired(text: str, hits: list[Hit]) -> str:
    """The text with the repairs of all hits; where two overlap the first wins and the other waits for the next run."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    spans: list[tuple[int, int, str]] = []
    for hit in hits:
        wanted = [_span(edit, starts) for edit in hit.edits]
        if not any((a < e and s < b) or (s, e) == (a, b) for s, e, _ in wanted for a, b, _ in spans):
            spans += wanted
    for start, end, replacement in sorted(spans, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _span(edit: Edit, starts: list[int]) -> tuple[int, int, str]:
    (first, column), (last, end) = edit.start, edit.end
    return starts[first - 1] + column, starts[last - 1] + end, edit.text


def diff(path: Path, before: str, after: str) -> str:
    """A unified diff of one file."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(lines)


def repair_files(repairs: dict[Path, list[Hit]], *, write: bool) -> str:
    """The diff of all repairs; written into the files if asked. Notebooks are left alone."""
    shown = []
    for path, hits in repairs.items():
        if path.suffix != ".py":
            continue
        before = path.read_bytes().decode("utf-8")
        plain = before.removeprefix("\ufeff").replace("\r\n", "\n")
        after = repaired(plain, hits)
        if after == plain:
            continue
        try:
            compile(after, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue  # a repair never leaves a file that does not parse
        shown.append(diff(path, plain, after))
        if write:
            ending = "\r\n" if "\r\n" in before else "\n"
            path.write_bytes(
                (before[: len(before) - len(before.removeprefix("\ufeff"))] + after.replace("\n", ending)).encode()
            )
    return "".join(shown)
