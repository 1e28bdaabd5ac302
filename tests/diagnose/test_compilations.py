"""Functions that are compiled again and again."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnose import diagnose_paths


def cause(folder: Path, lines: list[str]) -> str | None:
    log = folder / "job.log"
    log.write_text("\n".join(lines) + "\n")
    verdict = diagnose_paths([str(log)]).verdict
    return None if verdict is None else verdict.cause


def test_other_functions_compiled_before_training_are_no_fault(tmp_path: Path) -> None:
    lines = [f"Finished XLA compilation of jit(part{n}) in 0.1 sec" for n in range(20)]
    lines += ["Finished XLA compilation of jit(step) in 0.1 sec"] * 8  # for several shapes, before the first step
    lines += [f"step {n} loss {1 / (n + 1):.3f}" for n in range(20)]
    assert cause(tmp_path, lines) is None


def test_a_step_compiled_each_time(tmp_path: Path) -> None:
    pairs = (
        ("Finished XLA compilation of jit(step) in 0.1 sec", f"step {n} loss {1 / (n + 1):.3f}") for n in range(12)
    )
    assert cause(tmp_path, [line for pair in pairs for line in pair]) == "graph-retraced-every-step"
