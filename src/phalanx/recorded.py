"""`phalanx.checkpoint(model=…, optimizer=…)`: says what a recorded script's state is, where it is not found by itself."""

from __future__ import annotations

import sys
from typing import Any


def checkpoint(*, model: Any = None, optimizer: Any = None, step: int | None = None) -> bool:
    """Name the model and the optimizer (or lists of them) whose state a recording's checkpoints are to hold.

    To be called once, after they are made. A script that has no optimizer of PyTorch's, by whose steps a recording counts,
    calls it at the end of every pass instead, with the number of passes that are done: `phalanx.checkpoint(model=net, step=9)`.
    Outside of `phalanx run --record` it does nothing and returns False.
    """
    module = sys.modules.get("phalanx_record")
    if module is None:
        return False
    from importlib import import_module

    import_module("phalanx_record.state").told(model, optimizer, step)
    return True
