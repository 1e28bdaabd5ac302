"""Reads training scripts before they run and finds misuse of the distributed APIs; nothing is imported or executed."""

from phalanx.lint.engine import LintError, LintOptions, lint_paths

__all__ = ["LintError", "LintOptions", "lint_paths"]
