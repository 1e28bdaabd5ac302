"""What ranks are told so that they observe themselves, and where their evidence lies afterwards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

VARIABLE = "PHALANX_VERIFY"
INSIDE = Path(__file__).parent / "inside"
FILE = "verify.jsonl"  # in a rank's record folder
FRAMEWORKS = frozenset({"torch", "horovod", "tensorflow", "keras"})
ALL_STEPS = 400  # so many steps are all fingerprinted where runs are compared
LONGEST = 60.0  # seconds of training after which a run ends by itself, where nobody says how far it is to go


def settings_for(script: Path, steps: int, epochs: int, seconds: float, sample: bool = False) -> dict[str, Any]:
    """JSON values, the same for every rank. 0 stands for no limit."""
    return {
        "mode": "verify",
        "script": str(script.resolve()),
        "steps": steps,
        "epochs": epochs,
        "seconds": seconds,
        "sample": sample,
    }


_STARTS = re.compile(
    r"\b(?:mp|multiprocessing)\.(?:spawn|start_processes)\(|\bspawn\(\s*\w+\s*,|\b(?:mp\.|multiprocessing\.)?Process\(\s*target\s*="
)


def starts_ranks(script: Path) -> bool:
    """Whether a script starts its ranks itself, each of which makes the process group."""
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "init_process_group" in text and "multiprocessing" in text and _STARTS.search(text) is not None
