"""A signal that was not sent for lack of memory, as the watch recorded it."""

from __future__ import annotations

import json

import pytest

from ...conftest import Diagnose


@pytest.mark.parametrize(("cause", "is_somebody"), [("killed", True), ("unknown", False), ("oom-cgroup", False)])
def test_the_watch_knows_who_did_not_do_it(diagnose: Diagnose, cause: str, is_somebody: bool) -> None:
    why = {"signal": "SIGKILL", "text": "SIGKILL", "cause": cause}
    record = {"schema": "phalanx.exit/1", "rank": 3, "code": -9, "by": None, "order": 0, "why": why}
    logs = {f"rank{rank}/output.log": "world size 4\nstep 9 loss 0.3\n" for rank in range(4)}
    verdict = diagnose({**logs, "rank3/exit.json": json.dumps(record)}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (3,)
    assert ("not for memory: somebody or the scheduler sent it" in verdict.headline) == is_somebody
