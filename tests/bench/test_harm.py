"""A slice of `bench/harm.py`: jobs that work are the same jobs under `phalanx run`, and a job that is changed is seen."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"
ENVIRONMENTS = Path(__file__).parents[2] / ".zoo" / "environments"
SLICE = ("torch:surroundings", "tensorflow:parameter_server", "horovod:join", "jax:ring", "keras:process_group-torch")


@pytest.fixture(scope="module")
def harm() -> ModuleType:
    sys.path.insert(0, str(BENCH))
    try:
        import harm  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(BENCH))
    return harm  # type: ignore[no-any-return]


@pytest.mark.job
@pytest.mark.timeout(900)
@pytest.mark.parametrize("label", SLICE)
def test_a_job_that_works_is_not_changed(harm: ModuleType, label: str, tmp_path: Path) -> None:
    (case,) = [case for case in harm._cases() if case.label == label]
    if case.environment and not (ENVIRONMENTS / f"{case.environment}.whole").is_file():
        pytest.skip(f"needs {case.framework}: `make frameworks`")
    for _ in range(3):
        bare, watched = harm._run_case(case, 1, tmp_path)
        # PyTorch 2.13 on Gloo sometimes aborts at the very end of a good job, under any launcher. No other end is tried again.
        ends = [json.loads(file.read_text())["code"] for file in tmp_path.rglob("exit.json")]
        if bare[0].status == 0 and -signal.SIGABRT not in ends:
            break
    assert any(bare[0].said.values()), "the job itself does not work here"
    assert harm._verdict_on(bare, watched) == ""


def test_a_changed_job_is_seen(harm: ModuleType) -> None:
    def seen(status: int, *lines: str) -> object:
        return harm.Seen(status, {"0": list(lines)}, 1.0, 1.0)

    assert harm._verdict_on([seen(0, "= 1")], [seen(1, "= 1")]).startswith("other end")
    assert harm._verdict_on([seen(0, "= 1"), seen(0, "= 1")], [seen(0, "= 2")]) == "other numbers"
    assert harm._verdict_on([seen(0, "= 1"), seen(0, "= 3")], [seen(0, "= 2")]) == ""  # it varies by itself
    assert {case.framework for case in harm._cases()} == {"torch", "tensorflow", "keras", "horovod", "jax"}
    for framework in ("torch", "tensorflow", "keras", "horovod", "jax"):
        assert sum(case.framework == framework for case in harm._cases()) >= 12
