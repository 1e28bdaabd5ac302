"""Characters that came into a value by accident: quotes, blanks at its ends, a carriage return of another system's editor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from unicodedata import category

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.variables import known_names

_FREE_TEXT = ("LD_LIBRARY_PATH", "PYTHONPATH", "XLA_FLAGS", "TF_XLA_FLAGS", "PATH", "TF_CONFIG", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TORCH_LOGS")  # fmt: skip


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Of the variables that some library reads."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in all_facts:
        for name, value in one.variables.items():
            if name in known_names() and name not in _FREE_TEXT and (what := _stray(value)):
                found.setdefault((name, value, what), []).append(one.label)
    for (name, value, what), labels in found.items():
        shown = "".join(one for one in value if category(one) not in ("Cf", "Cc", "Zl", "Zp"))
        right = shown.strip().strip("\"'").strip()
        yield observe("stray-characters-in-value", tuple(labels), name=name, value=repr(value), what=what, right=right)


def _stray(value: str) -> str:
    invisible = next(
        (one for one in value if one not in "\r\n\t " and category(one) in ("Cf", "Cc", "Zs", "Zl", "Zp")), ""
    )
    if invisible:
        return f"an invisible character (U+{ord(invisible):04X})"
    if "\r" in value:
        return "a carriage return"
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return "quotation marks"
    if value != value.strip():
        return "white space at an end"
    if ", " in value and not value.startswith(("{", "[")):
        return "a blank after a comma" if not any(mark in value for mark in "{[(") and len(value) < 120 else ""
    return ""
