"""Crashes after a collective under a condition on the rank, with real source files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...conftest import Diagnose

SITE = "/opt/lib/python3.11/site-packages/torch"
TRAIN = """def evaluate(model, batch):
    return model(batch)


def main(rank, model, batches, group):
    for batch in batches:
        model(batch).sum().backward()
        if rank == 0:
            evaluate(model, batch)
        if rank == 0:
            dist.all_reduce(batch, group=group)
        if rank == 0:
            dist.send(batch, 1)
        else:
            dist.recv(batch, 0)
"""
LOST = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4242"
SIZES = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 48 vs 4"


def failed(rank: int, error: str, *frames: tuple[str, int, str, str]) -> str:
    lines = ["Traceback (most recent call last):"]
    for file, line, function, source in frames:
        lines += [f'  File "{file}", line {line}, in {function}', f"    {source}"]
    return "".join(f"[rank{rank}]: {text}\n" for text in [*lines, error])


def backward(script: Path, rank: int) -> str:
    mine = (str(script), 7, "main", "model(batch).sum().backward()")
    return failed(rank, LOST, mine, (f"{SITE}/autograd/graph.py", 9, "_engine_run_backward", "return run()"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def test_the_wrapped_model_is_called_by_one_rank_alone(diagnose: Diagnose, script: Path) -> None:
    alone = failed(
        0,
        SIZES,
        (str(script), 9, "main", "evaluate(model, batch)"),
        (str(script), 2, "evaluate", "return model(batch)"),
        (f"{SITE}/nn/modules/module.py", 9, "_wrapped_call_impl", "return self._call_impl()"),
        (f"{SITE}/nn/parallel/distributed.py", 9, "forward", "self._sync_buffers()"),
    )
    verdict = diagnose(alone + backward(script, 1) + backward(script, 2)).verdict
    assert verdict is not None
    assert verdict.rule == "CER062"
    assert verdict.headline == "Rank 0 alone calls the wrapped model in evaluate (train.py:2, under `if rank == 0`)."
    assert (verdict.culprit_ranks, verdict.cause) == ((0,), "rank-conditional-collective")
    assert [fix.title for fix in verdict.shown_fixes] == ["Call it on every rank, or without the wrapper"]


@pytest.mark.parametrize(
    ("line", "source", "function"),
    [
        (11, "dist.all_reduce(batch, group=group)", "all_reduce"),  # a group that others need not belong to
        (13, "dist.send(batch, 1)", "send"),  # one half of a pair
        (15, "dist.recv(batch, 0)", "recv"),
    ],
)
def test_what_others_need_not_call(diagnose: Diagnose, script: Path, line: int, source: str, function: str) -> None:
    alone = failed(
        0, SIZES, (str(script), line, "main", source), (f"{SITE}/distributed/distributed_c10d.py", 9, function, "wait()")
    )  # fmt: skip
    verdict = diagnose(alone + backward(script, 1) + backward(script, 2)).verdict
    assert verdict is not None
    assert verdict.rule != "CER062"


def test_a_rank_that_failed_by_itself_explains_all(diagnose: Diagnose, script: Path) -> None:
    alone = failed(0, "ValueError: odd", (str(script), 2, "evaluate", "return model(batch)"))
    verdict = diagnose(alone + backward(script, 1) + backward(script, 2)).verdict
    assert verdict is not None
    assert verdict.headline.startswith("Rank 0 raised ValueError: odd")


def test_a_file_that_has_changed_since_is_not_believed(diagnose: Diagnose, script: Path) -> None:
    alone = failed(
        0,
        SIZES,
        (str(script), 9, "main", "validate(model)"),
        (f"{SITE}/distributed/distributed_c10d.py", 9, "all_reduce", "wait()"),
    )
    verdict = diagnose(alone + backward(script, 1) + backward(script, 2)).verdict
    assert verdict is not None
    assert verdict.rule != "CER062"


def test_most_ranks_under_a_condition_are_not_the_odd_ones(diagnose: Diagnose, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def main(rank, batch):\n    if rank != 2:\n        dist.barrier()\n    dist.all_reduce(batch)\n")
    inside = (f"{SITE}/distributed/distributed_c10d.py", 9, "barrier", "work.wait()")
    most = [failed(rank, LOST, (str(script), 3, "main", "dist.barrier()"), inside) for rank in (0, 1, 3)]
    beside = (f"{SITE}/distributed/distributed_c10d.py", 9, "all_reduce", "work.wait()")
    odd = failed(2, LOST, (str(script), 4, "main", "dist.all_reduce(batch)"), beside)
    verdict = diagnose("".join(most) + odd).verdict
    assert verdict is not None
    assert not {0, 1, 3} & set(verdict.culprit_ranks)
