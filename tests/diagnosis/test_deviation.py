"""Why the accused did not come to where the others waited."""

from __future__ import annotations

import pytest

from ..conftest import Diagnose
from .test_verdicts import steps, trace

_TIMED_OUT = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 9000ms for recv operation to complete"
_LOST = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:42416."


def _waiting(ranks: tuple[int, ...], line: int = 60, source: str = "loss.backward()") -> dict[str, str | bytes]:
    return {f"rank{rank}.log": steps(40) + trace(line, source, _TIMED_OUT) for rank in ranks}


@pytest.mark.parametrize(
    ("odd", "source", "cause", "pattern"),
    [
        (0, "dist.barrier()", "rank-conditional-collective", "fix-behavior-logic"),
        (2, "dist.barrier()", "uneven-steps", "fix-batch-size-or-data-partition"),
        (2, "save_checkpoint(dist.all_gather(x))", "rank-conditional-collective", "fix-behavior-logic"),
        (2, "answer = requests.post(url)", "rank-stuck-in-user-code", "fix-behavior-logic"),
    ],
)
def test_a_rank_at_another_line(diagnose: Diagnose, odd: int, source: str, cause: str, pattern: str) -> None:
    others = tuple(rank for rank in range(4) if rank != odd)
    verdict = diagnose(_waiting(others) | _waiting((odd,), 71, source)).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks, verdict.cause) == ("perf.hang", (odd,), cause)
    assert verdict.fixes[0].pattern == pattern


def test_the_same_call_from_another_place_is_another_order(diagnose: Diagnose) -> None:
    def called_from(line: int) -> str:
        frames = f'  File "/home/user/train.py", line {line}, in main\n    share(x)\n  File "/home/user/train.py", line 20, in share\n    dist.all_reduce(x)\n'
        return steps(40) + f"Traceback (most recent call last):\n{frames}{_TIMED_OUT}\n"

    verdict = diagnose({f"rank{rank}.log": called_from(42 if rank == 2 else 40) for rank in range(3)}).verdict
    assert verdict is not None
    assert (verdict.culprit_ranks, verdict.cause) == ((2,), "reordered-collectives")


@pytest.mark.parametrize(("own", "cause"), [(30, "uneven-steps"), (40, "skipped-collective")])
def test_a_rank_that_had_ended_well(diagnose: Diagnose, own: int, cause: str) -> None:
    logs: dict[str, str | bytes] = {
        f"rank{rank}.log": steps(40) + trace(60, "loss.backward()", _LOST) for rank in (0, 2)
    }
    logs |= {"rank1.log": steps(own), "exit_codes.json": '{"0": 1, "1": 0, "2": 1}'}
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.culprit_ranks, verdict.cause) == ((1,), cause)


def test_nobody_accused_has_no_deviation(diagnose: Diagnose) -> None:
    verdict = diagnose(_waiting((0, 1, 2))).verdict
    assert verdict is not None
    assert (verdict.culprit_ranks, verdict.cause) == ((), "rank-missing-from-collective")


def test_who_waits_for_its_own_address_has_anothers_rank(diagnose: Diagnose) -> None:
    error = "torch.distributed.DistStoreError: wait timeout after 10000ms, keys: /default_pg/0//cpu//0/2"
    text = trace(22, 'dist.init_process_group("gloo")', error)
    verdict = diagnose({f"rank{rank}.log": text for rank in range(3)}).verdict
    assert verdict is not None
    assert (verdict.culprit_ranks, verdict.cause) == ((2,), "duplicate-rank")


def test_later_attempts_suffer_from_the_first(diagnose: Diagnose) -> None:
    agent = "E1116 22:16:15.062 23037 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: {} (pid: {}) of binary: /venv/bin/python3\n"
    first = "rank 1 step 3 loss 0.5\nrank 0 step 3 loss 0.5\n" + "".join(
        f"[rank1]: {line}\n"
        for line in trace(
            12, "index, label = row", "ValueError: not enough values to unpack (expected 2, got 1)"
        ).splitlines()
    )
    again = trace(
        19,
        'dist.init_process_group("gloo")',
        "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:403$0",
    )
    job = first + agent.format(1, 101) + again + agent.format(0, 102) + again + agent.format(0, 103)
    verdict = diagnose({"job.log": job}).verdict
    assert verdict is not None
    assert "ValueError" in verdict.evidence[0].text
    assert verdict.culprit_ranks == (1,)


def test_a_restart_that_one_rank_tells_of_is_got_over(diagnose: Diagnose) -> None:
    raised = "".join(
        f"[rank1]: {line}\n" for line in trace(30, "save(model)", "OSError: [Errno 116] Stale file handle").splitlines()
    )
    agent = "E1116 22:17:54.686 26380 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: 26444) of binary: /venv/bin/python3\n"
    report = diagnose({"job.log": steps(3) + raised + agent + steps(40)})
    assert report.verdict is None
    assert diagnose({"job.log": steps(3) + raised + agent}).verdict is not None
