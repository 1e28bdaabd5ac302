"""Ranks of a watched job that died by a signal: whose it was, and what the watch saw of it."""

from __future__ import annotations

import json

from tests.conftest import Diagnose


def bundle(code: int, how: str, text: str) -> dict[str, bytes]:
    """Rank 1 of three died by itself, and the others were ended for it."""
    files = {"manifest.json": json.dumps({"schema": "phalanx.bundle/1", "size": 3, "framework": "torch"}).encode()}
    for rank in range(3):
        record = {"schema": "phalanx.exit/1", "rank": rank, "code": -15, "how": "signal 15 (SIGTERM)", "order": rank}
        record |= {"by": f"rank 1 ended with {how}", "why": {"cause": "asked-to-end"}}
        if rank == 1:
            record |= {"code": code, "how": how, "by": None, "order": 0, "why": {"text": text}}
        files[f"attempt0/rank{rank}/output.log"] = b"step 3 loss 0.2\n"
        files[f"attempt0/rank{rank}/exit.json"] = json.dumps(record).encode()
    return files


def test_the_signal_of_one_rank_is_not_taken_for_that_of_those_who_were_ended_for_it(diagnose: Diagnose) -> None:
    text = "an illegal instruction, while it was in forward() at model.py:8"
    verdict = diagnose(bundle(-4, "signal 4 (SIGILL)", text)).verdict
    assert verdict is not None
    assert (verdict.rule, verdict.culprit_ranks, verdict.affected_ranks) == ("SEG008", (1,), (1,))
    assert verdict.victim_ranks == (0, 2)


def test_what_the_watch_saw_of_a_death_is_said(diagnose: Diagnose) -> None:
    text = "killed by the kernel for memory: its control group's limit of 2.0 GiB was reached, and it held 1.9 GiB"
    for code, how in ((-9, "signal 9 (SIGKILL)"), (-11, "signal 11 (SIGSEGV)")):
        verdict = diagnose(bundle(code, how, text)).verdict
        assert verdict is not None
        assert verdict.culprit_ranks == (1,)
        assert text in verdict.summary
        assert verdict.summary.count(text) == 1


def test_of_a_bundle_nobody_is_asked_for_statuses_that_are_in_it(diagnose: Diagnose) -> None:
    files = bundle(-15, "signal 15 (SIGTERM)", "")
    for rank in range(3):
        name = f"attempt0/rank{rank}/exit.json"
        files[name] = json.dumps({**json.loads(files[name]), "by": "interrupted by SIGTERM", "why": {}}).encode()
    report = diagnose(files)
    assert (report.verdict, report.not_checked) == (None, ())
    del files["attempt0/rank2/exit.json"]  # the launcher was killed
    assert [one.what for one in diagnose(files).not_checked] == ["how the job ended"]
