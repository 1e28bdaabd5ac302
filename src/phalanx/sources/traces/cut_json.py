"""JSON whose end may be missing, because the job was killed while it was being written."""

from __future__ import annotations

import json
from typing import Any

# The last whole element ends where a brace closes; braces of nested objects are tried too, so a few steps back must do.
_STEPS_BACK = 64


def load_cut_json(text: str, closing: str) -> tuple[Any, bool]:
    """What the text holds, and whether it breaks off. `closing` is what ends a whole file after its last element.

    Raises ValueError where not even a beginning can be read.
    """
    try:
        return json.loads(text), False
    except ValueError:
        pass
    end = text.rfind("}")
    for _ in range(_STEPS_BACK):
        if end < 0:
            break
        try:
            return json.loads(text[: end + 1] + closing), True
        except ValueError:
            end = text.rfind("}", 0, end)
    raise ValueError("no whole element")
