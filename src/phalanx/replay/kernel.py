"""The compiled kernel of recordings: made after a recorded job, for those that follow, or now by `python -m phalanx.replay.kernel`."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from phalanx.model import bundle as layout
from phalanx.replay.inside.phalanx_record import compiled


def make_for_later(bundle: Path) -> bool:
    """If the ranks of this job found no kernel for their PyTorch, have it compiled; whether it is. The job is over, and nobody waits for it."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        meta = next(bundle.glob(f"attempt*/rank*/{layout.RECORD}/meta.json"), None)
        facts = json.loads(meta.read_text(encoding="utf-8")).get("kernel_for") if meta is not None else None
        if facts and "folder" in facts and compiled.is_wanted(facts):
            compiled.make_later(facts)
            return True
    return False


def main() -> int:
    """Compile it for this interpreter's PyTorch, unless it is there."""
    import torch

    facts = compiled.facts_of(torch)
    target = compiled.target_of(facts)
    if not target or not Path(target).exists():
        wrong = compiled.make(facts, is_patient=False)
        if wrong:
            print(f"the kernel for PyTorch {torch.__version__} could not be compiled: {wrong}", file=sys.stderr)
            return 1
    print(f"PyTorch {torch.__version__}: {target}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
