"""A bundle as evidence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from phalanx.diagnosis import diagnose_paths
from phalanx.run.bundle import BundleWriter
from phalanx.sources.bundle import earlier_attempts, evidence_of, is_bundle, read_watch, was_cut_off

TRACEBACK = """\
step 3 loss 0.5
Traceback (most recent call last):
  File "/home/user/job/train.py", line 9, in <module>
    raise ValueError("bad sample 17")
ValueError: bad sample 17
"""


def make(folder: Path, codes: dict[int, int], outputs: dict[int, str], by: dict[int, str] | None = None) -> Path:
    """A bundle of one attempt, as `phalanx run` writes it."""
    manifest = {"schema": "phalanx.bundle/1", "size": max(outputs) + 1, "framework": "torch", "attempts": []}
    (folder / "attempt0").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for rank, text in outputs.items():
        place = folder / "attempt0" / f"rank{rank}"
        place.mkdir()
        (place / "output.log").write_text(text)
        (place / "environment.json").write_text(json.dumps({"HINT": "RuntimeError: CUDA out of memory"}))
        (place / "process.json").write_text(json.dumps({"pid": 1}))
        if rank in codes:
            record = {"schema": "phalanx.exit/1", "rank": rank, "code": codes[rank], "by": (by or {}).get(rank)}
            (place / "exit.json").write_text(json.dumps(record))
    return folder


def test_what_is_evidence_and_what_is_not(tmp_path: Path) -> None:
    bundle = make(tmp_path / "b", {0: 0}, {0: "step 1\n"})
    rank = bundle / "attempt0" / "rank0"
    for name in ("stacks-1.txt", "stacks-2.txt", "stacks-10.txt", "heartbeat", ".exit.json.new"):
        (rank / name).write_text("")
    assert is_bundle(bundle)
    assert not is_bundle(tmp_path)
    assert [path.name for path in evidence_of(bundle)] == ["manifest.json", "output.log", "exit.json", "stacks-10.txt"]


def test_the_failing_rank_is_accused_and_those_we_ended_are_not(tmp_path: Path) -> None:
    outputs = {0: "step 3\n", 1: TRACEBACK, 2: "step 3\n"}
    ended = "rank 1 ended with exit status 1"
    report = diagnose_paths([str(make(tmp_path / "b", {0: -15, 1: 1, 2: -9}, outputs, {0: ended, 2: ended}))])
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (1,)
    assert report.verdict.victim_ranks == (0, 2)
    assert (report.world.size, report.world.framework, report.world.launcher) == (3, "torch", "phalanx run")


def test_a_lonely_kill_is_the_ranks_own_even_if_others_were_killed_too(tmp_path: Path) -> None:
    outputs = dict.fromkeys(range(3), "step 3\n")
    ended = "rank 2 ended with signal 9 (SIGKILL)"
    report = diagnose_paths([str(make(tmp_path / "b", dict.fromkeys(range(3), -9), outputs, {0: ended, 1: ended}))])
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (2,)


def test_an_interrupted_job_accuses_nobody(tmp_path: Path) -> None:
    lost = TRACEBACK.replace("ValueError: bad sample 17", "RuntimeError: Connection closed by peer [127.0.0.1]:999")
    by = dict.fromkeys(range(2), "interrupted by SIGINT")
    report = diagnose_paths([str(make(tmp_path / "b", {0: -2, 1: 1}, {0: "step 3\n", 1: lost}, by))])
    assert report.findings == ()


def test_a_server_that_was_told_to_go_ended_well(tmp_path: Path) -> None:
    report = diagnose_paths(
        [str(make(tmp_path / "b", {0: 0, 1: -15}, {0: "step 3\n", 1: "serving\n"}, {1: "end of service"}))]
    )
    assert report.findings == ()


def test_earlier_attempts_are_told(tmp_path: Path) -> None:
    bundle = make(tmp_path / "b", {0: 0, 1: 0}, {0: "step 3\n", 1: "step 3\n"})
    attempts = [{"attempt": 0, "reason": "rank 1 ended with exit status 3", "restarted": True}, {"attempt": 1}]
    manifest = json.loads((bundle / "manifest.json").read_text()) | {"attempts": attempts}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    assert earlier_attempts(bundle) == ["attempt 0: rank 1 ended with exit status 3; started again"]
    assert diagnose_paths([str(bundle)]).to_json()["restarts"] == earlier_attempts(bundle)


def test_a_cut_off_watch_is_read_as_far_as_it_goes() -> None:
    text = '{"kind": "stall", "ranks": [2], "text": "x", "data": {"missing": [2]}}\n{"kind": "rec'
    (event,) = read_watch("watch.jsonl", text)
    assert event.data["missing"] == (2,)


def test_damaged_records_do_no_harm(tmp_path: Path) -> None:
    bundle = make(tmp_path / "b", {0: 0}, {0: "step 1\n"})
    (bundle / "attempt0" / "rank0" / "exit.json").write_text('{"schema": "phalanx.exit/1", "rank": "x"')
    (bundle / "attempt0" / "watch.jsonl").write_text("[]\n7\n{}\n")
    assert diagnose_paths([str(bundle)]).findings == ()


def test_a_bundle_that_was_cut_off_says_so_and_one_that_is_being_written_does_not(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b", print)
    (tmp_path / "b").mkdir()
    writer.begin({"size": 1, "framework": "torch"})
    assert not was_cut_off(tmp_path / "b"), "somebody holds it"
    copied = tmp_path / "copied"
    shutil.copytree(tmp_path / "b", copied)
    assert was_cut_off(copied), "as it is left by SIGKILL"
    report = diagnose_paths([str(copied)])
    assert any("was cut off" in one.what for one in report.not_checked)
    writer.finish(0, "done")
    assert not was_cut_off(tmp_path / "b")
    assert not (tmp_path / "b" / ".running").exists()
