"""The report of a checkpoint for a terminal: what it holds, then what is wrong with it."""

from __future__ import annotations

import textwrap
from typing import Any, TextIO

from phalanx.model import Finding, Report
from phalanx.model.printable import printable, printable_tree
from phalanx.model.ranks import name_ranks

_WIDTH = 110
_WORDS = {
    "model": "parameters",
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "scaler": "loss scaler",
    "random": "random states",
    "sampler": "sampler position",
}


def print_checkpoint(
    report: Report, summary: dict[str, Any], seconds: float, out: TextIO, *, everything: bool = False
) -> None:
    """The findings after the inventory, errors first."""
    report = printable_tree(report)
    summary = printable_tree(summary)
    paint = _Paint(out.isatty())
    out.write("\n".join(_inventory(summary)) + "\n")
    for finding in report.findings:
        out.write("\n" + _block(finding, paint, everything))
    if report.findings:
        out.write("\n")
    for item in report.not_checked[: None if everything else 6]:
        out.write(f"not checked: {item.what}; needs {item.needs}\n")
    errors = sum(finding.severity == "error" for finding in report.findings)
    warnings = len(report.findings) - errors
    looked = f"{_size(summary['bytes'])}, {seconds:.1f} s"
    if not report.findings:
        words = "Nothing wrong found" if report.is_complete else "Nothing wrong found in what could be looked at"
        out.write(f"{paint.good(words)} ({looked}).\n")
        return
    counted = [
        f"{errors} finding{'s' * (errors > 1)}" * bool(errors),
        f"{warnings} warning{'s' * (warnings > 1)}" * bool(warnings),
    ]
    rule = report.findings[0].rule
    out.write(f"{', '.join(filter(None, counted))} ({looked}). more: phalanx rules explain {rule} · --all\n")


def _inventory(summary: dict[str, Any]) -> list[str]:
    step = f", {summary['step']}" if summary["step"] else ""
    rows = [f"{summary['path']}: {summary['format']}{step}, {'complete' if summary['complete'] else 'NOT complete'}"]
    layout = [f"{name} {value}" for name, value in summary["parallelism"].items()]
    if summary["world_size"]:
        layout.insert(0, f"saved by {summary['world_size']} rank{'s' * (summary['world_size'] > 1)}")
    files = f"{summary['files']} file{'s' * (summary['files'] != 1)}, {_size(summary['bytes'])}"
    rows.append(f"  layout   {'; '.join([files, *layout])}")
    dtypes = ", ".join(f"{count} {name}" for name, count in summary["dtypes"].items())
    model = summary["tensors"]["model"]
    if model:
        rows.append(f"  model    {model:,} tensors ({dtypes}), {summary['parameters']:,} numbers")
    held = [_state(name, one) for name, one in summary["states"].items() if name != "model"]
    stamps = [f"{name} {', '.join(f'{value:g}' for value in values[:4])}" for name, values in summary["stamps"].items()]
    rows += textwrap.wrap(
        f"holds    {', '.join([*held, *stamps[:6]]) or ('parameters only' if model else 'nothing that could be read')}",
        _WIDTH,
        initial_indent="  ",
        subsequent_indent=" " * 11,
    )
    lacks = [_WORDS[name] for name in summary["lacks"]]
    rows.append(f"  lacks    {', '.join(lacks)}") if lacks and (held or stamps) else None
    if summary["needs"]:
        rows.append(f"  imports  {', '.join(summary['needs'][:4])} (torch.load with weights_only=True may refuse it)")
    return [printable(row) for row in rows]


def _state(name: str, one: dict[str, Any]) -> str:
    ranks = f" of {name_ranks(tuple(one['ranks']))}" if one["ranks"] else ""
    return _WORDS[name] + ranks


def _block(finding: Finding, paint: _Paint, everything: bool) -> str:
    mark = "✗" if finding.severity == "error" else "!"
    head = paint.bad(f"{mark} {finding.first_line}") if mark == "✗" else paint.warn(f"{mark} {finding.first_line}")
    rows = [head, paint.dim(f"  {finding.title}  [{finding.rule}, {finding.symptom}, {finding.confidence.value}]")]
    for number, fix in enumerate(finding.shown_fixes[: None if everything else 2]):
        rows += _wrapped("fix " if not number else "or  ", f"{fix.title}: {fix.do}")
        if everything and fix.why:
            rows += _wrapped("why ", fix.why)
    if everything:
        rows += [paint.dim(f"  seen {item.file}: {item.text}") for item in finding.evidence]
    return "\n".join(rows) + "\n"


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {label} ",
        subsequent_indent=" " * 7,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    return ""


class _Paint:
    """Colours, where there is a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        import os

        self._is_on = is_terminal and not os.environ.get("NO_COLOR")

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._is_on else text

    def bad(self, text: str) -> str:
        return self._wrap("1;31", text)

    def warn(self, text: str) -> str:
        return self._wrap("1;33", text)

    def good(self, text: str) -> str:
        return self._wrap("1;32", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)
