"""The same job is never judged more shallowly from its bundle than from its logs alone, over the zoo's recorded jobs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.model import Finding
from phalanx.zoo.fault import Fault
from phalanx.zoo.reading import load_zoo

ZOO = Path(__file__).parents[2] / "faults"
_RANK = re.compile(r"rank(\d+)\.log")


def per_rank() -> list[Fault]:
    """Jobs in view of which every rank has a log of its own, as in a bundle, and that ended by themselves: where a job was ended
    from outside, a bundle has the watch's record of the stall, which logs cannot be turned into."""
    faults = [fault for fault in load_zoo(ZOO) if fault.split == "train" and fault.framework == "torch"]
    of_ranks = [fault for fault in faults if any(_RANK.fullmatch(path.name) for path in fault.recorded.iterdir())]
    return [fault for fault in of_ranks if not {-9, -15} & set(statuses_of(fault.recorded).values())]


def statuses_of(recorded: Path) -> dict[str, int]:
    path = recorded / "exit_codes.json"
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def as_bundle(recorded: Path, folder: Path) -> Path:
    """What `phalanx run` would have kept of the same output and exit statuses."""
    logs = {int(match[1]): path for path in recorded.iterdir() if (match := _RANK.fullmatch(path.name))}
    statuses = statuses_of(recorded)
    for rank, path in logs.items():
        place = folder / "attempt0" / f"rank{rank}"
        place.mkdir(parents=True)
        (place / "output.log").write_bytes(path.read_bytes())
        if (code := statuses.get(str(rank))) is not None:
            record = {"schema": "phalanx.exit/1", "rank": rank, "code": code, "by": None, "order": rank, "why": {}}
            (place / "exit.json").write_text(json.dumps(record))
    attempts = [{"attempt": 0, "started": 0.0, "reason": "", "first_ranks": [], "restarted": False}]
    manifest = {"schema": "phalanx.bundle/1", "size": len(logs), "framework": "torch", "attempts": attempts}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def depth(finding: Finding) -> tuple[bool, bool, bool]:
    """Whether it names a rule, a rank, and the user's line."""
    return finding.rule is not None, bool(finding.culprit_ranks), finding.place is not None


def test_there_are_such_jobs() -> None:
    assert len(per_rank()) >= 5


@pytest.mark.parametrize("fault", per_rank(), ids=lambda fault: fault.name)
def test_a_bundle_is_judged_no_less_deeply(fault: Fault, tmp_path: Path) -> None:
    of_logs = diagnose_paths([str(fault.recorded)]).verdict
    of_bundle = diagnose_paths([str(as_bundle(fault.recorded, tmp_path))]).verdict
    if of_logs is None:
        return
    assert of_bundle is not None
    assert (of_bundle.symptom, of_bundle.culprit_ranks) == (of_logs.symptom, of_logs.culprit_ranks)
    assert all(kept >= had for kept, had in zip(depth(of_bundle), depth(of_logs), strict=True))
