"""What ranks are told so that they observe themselves, and where their evidence lies afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

VARIABLE = "PHALANX_VERIFY"
INSIDE = Path(__file__).parent / "inside"
FILE = "verify.jsonl"  # in a rank's record folder
FRAMEWORKS = frozenset({"torch", "horovod"})
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
