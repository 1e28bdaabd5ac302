"""Functions that are compiled again and again."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnosis import diagnose_paths


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


def _traced(count: int) -> str:
    return f"WARNING:tensorflow:{count} out of the last {count} calls to <function train_step at 0x7f00> triggered tf.function retracing."


def test_steps_that_stay_as_slow_as_those_that_were_traced(tmp_path: Path) -> None:
    """The first waits for its peers besides, and so is no measure."""
    lines = [f"step {n} loss {2 / (n + 1):.3f} ({9.0 if n == 0 else 1.0 + n % 3 / 10:.2f} s)" for n in range(20)]
    lines[4:4] = [_traced(5)]
    lines[6:6] = [_traced(6)]
    assert cause(tmp_path, lines) == "graph-retraced-every-step"


def test_a_function_that_settles_after_the_warning(tmp_path: Path) -> None:
    lines = [f"step {n} loss {2 / (n + 1):.3f} ({1.1 if n < 6 else 0.1:.2f} s)" for n in range(20)]
    lines[4:4] = [_traced(5)]
    lines[6:6] = [_traced(6)]
    assert cause(tmp_path, lines) is None
