"""A rank that had fewer batches than the others, told by the lines where the ranks stood."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import Diagnose

_LOST = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:42416."
_SCRIPT = """\
def main(loader, rank):
    for step, (x, y) in enumerate(loader):
        loss(x, y).backward()
        {inside}
    dist.all_reduce(total)
    {after}
"""


def _stack(script: Path, line: int, source: str) -> str:
    at = f'  File "{script}", line 9, in <module>\n    main(loader, rank)\n  File "{script}", line {line}, in main\n'
    library = '  File "/venv/lib/python3.11/site-packages/torch/_tensor.py", line 6, in backward\n    run()\n'
    return f"Traceback (most recent call last):\n{at}    {source}\n{library}{_LOST}\n"


def _job(tmp_path: Path, inside: str = "pass", after: str = "pass", own_code: int = 0) -> dict[str, str | bytes]:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT.format(inside=inside, after=after))
    steps = "".join(f"step {step} loss 0.{90 - step}\n" for step in range(17))
    logs: dict[str, str | bytes] = {
        f"rank{rank}.log": steps + _stack(script, 3, "loss(x, y).backward()") for rank in (0, 2)
    }
    own = steps if own_code == 0 else steps + _stack(script, 5, "dist.all_reduce(total)")
    return logs | {"rank1.log": own, "exit_codes.json": f'{{"0": 1, "1": {own_code}, "2": 1}}'}


def test_a_rank_that_ended_well_has_no_batches_left(tmp_path: Path, diagnose: Diagnose) -> None:
    verdict = diagnose(_job(tmp_path)).verdict
    assert verdict is not None
    assert (verdict.rule, verdict.cause, verdict.culprit_ranks) == ("CER063", "uneven-steps", (1,))
    assert verdict.headline == "Rank 1 ran out of batches after step 16 while ranks 0, 2 still had some (train.py:2)."
    assert verdict.fixes[0].pattern == "fix-batch-size-or-data-partition"


@pytest.mark.parametrize(
    ("inside", "after"), [("if x.max() > 9: break", "pass"), ("pass", "if rank == 1: sys.exit(0)")]
)
def test_a_script_that_leaves_by_itself_is_not_short_of_data(
    tmp_path: Path, diagnose: Diagnose, inside: str, after: str
) -> None:
    verdict = diagnose(_job(tmp_path, inside, after)).verdict
    assert verdict is not None
    assert verdict.rule != "CER063"
    assert verdict.culprit_ranks == (1,)


def test_a_rank_that_stands_behind_the_loop(tmp_path: Path, diagnose: Diagnose) -> None:
    timed_out = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 9000ms for recv operation to complete"
    logs = {name: str(text).replace(_LOST, timed_out) for name, text in _job(tmp_path, own_code=1).items()}
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.rule, verdict.culprit_ranks) == ("CER063", (1,))


def test_the_loop_may_be_in_a_function_that_the_rank_has_come_back_from(tmp_path: Path, diagnose: Diagnose) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "def train(loader):\n    for x, y in loader:\n        loss(x, y).backward()\n\n\n"
        "def main(loader):\n    train(loader)\n    dist.barrier()\n"
    )
    main = (
        f'  File "{script}", line 9, in <module>\n    main(loader)\n  File "{script}", line {{}}, in main\n    {{}}\n'
    )
    inside = f'  File "{script}", line 3, in train\n    loss(x, y).backward()\n'
    timed_out = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 9000ms for recv operation to complete\n"
    head = "step 16 loss 0.7\nTraceback (most recent call last):\n"
    logs: dict[str, str | bytes] = {
        f"rank{rank}.log": head + main.format(7, "train(loader)") + inside + timed_out for rank in (0, 2)
    }
    logs["rank1.log"] = head + main.format(8, "dist.barrier()") + timed_out
    verdict = diagnose(logs | {"exit_codes.json": '{"0": 1, "1": 1, "2": 1}'}).verdict
    assert verdict is not None
    assert (verdict.rule, verdict.culprit_ranks) == ("CER063", (1,))
    assert "(train.py:2)" in verdict.headline
