"""A rank that aborted without a stack, with real source files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...conftest import Diagnose
from .test_called_by_some import LOST, SITE, failed

TRAIN = """def save(net):
    if rank == 0:
        state = get_model_state_dict(net)
        torch.save(state, "last.pt")


for step in range(4):
    net(batch).sum().backward()
"""
ABORTED = """terminate called after throwing an instance of 'gloo::EnforceNotMet'
  what():  [enforce fail at gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 90 vs 48.
"""
ENDED = "E1118 14:07:19.351000 19172 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -6) local_rank: 0 (pid: 19224) of binary: python\n"


def log_of(script: Path) -> str:
    call = (str(script), 8, "<module>", "net(batch).sum().backward()")
    lost = [failed(rank, LOST, call, (f"{SITE}/distributed/c10d.py", 9, "all_gather", "wait()")) for rank in (1, 2)]
    return ABORTED + "".join(lost) + ENDED


def test_the_source_tells_what_the_aborted_rank_called(diagnose: Diagnose, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    verdict = diagnose(log_of(script)).verdict
    assert verdict is not None
    assert verdict.headline == "Rank 0 alone calls get_model_state_dict (train.py:3, under `if rank == 0`)."
    assert verdict.culprit_ranks == (0,)
    assert verdict.fixes[0].title == "Call it on every rank, write on rank 0 only"


@pytest.mark.parametrize(
    "source",
    [
        TRAIN.replace("rank == 0", "rank != 2"),  # another rank passes it, too
        TRAIN.replace("rank == 0", "rank == 1"),  # not the one that aborted
        TRAIN + "if rank == 0:\n    barrier()\n",  # two that may have been it
    ],
)
def test_no_call_is_named_where_the_source_does_not_decide(diagnose: Diagnose, tmp_path: Path, source: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(source)
    verdict = diagnose(log_of(script)).verdict
    assert verdict is None or verdict.rule != "CER062"
