"""Reading that takes too long ends with what is known: beginnings and ends are read, and what was left out is told."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.sources.patience import Patience, never_opened

_STEPS = b"".join(b"step %d loss 0.5 lr 0.001 tokens per second 1200\n" % step for step in range(20_000))
_FAILURE = b"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def _log(times: int = 8) -> bytes:
    return b"[rank0]: starting\n" + _STEPS * times + _FAILURE


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for whole files is over at once, that for their ends is not."""
    monkeypatch.setattr(Patience, "of", classmethod(lambda cls, seconds: cls(whole_until=0.0)))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_the_end_of_a_long_log_is_read(tmp_path: Path, no_time: None, packed: bool) -> None:
    data = _log()
    (tmp_path / "job.log").write_bytes(gzip.compress(data, 1) if packed else data)
    report = diagnose_paths([str(tmp_path)])
    assert report.verdict is not None
    assert report.verdict.symptom == "fail.out-of-memory"
    assert set(report.verdict.culprit_ranks) <= {3}
    (proof,) = [one for one in report.verdict.evidence if "out of memory" in one.text][:1]
    assert proof.line == data.count(b"\n")  # the lines between are counted, though nobody looked at them
    (told,) = [item for item in report.not_checked if "time limit" in item.what]
    assert told.what.startswith("job.log: ")
    assert "MiB of its middle" in told.what
    assert "--time-limit 0" in told.needs


def test_nothing_is_left_out_in_time(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_bytes(_log(3))
    report = diagnose_paths([str(tmp_path)])
    assert not [item for item in report.not_checked if "time limit" in item.what]


def test_no_rank_is_accused_of_what_was_left_out(tmp_path: Path, no_time: None) -> None:
    """Rank 1 says in the middle of its log that it waits, as rank 0 does at its end; the middle is not read."""
    waits = b"[E ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
    (tmp_path / "rank0.log").write_bytes(b"step 1\n" + waits % 0)
    (tmp_path / "rank1.log").write_bytes(_STEPS * 3 + waits % 1 + _STEPS * 3)
    report = diagnose_paths([str(tmp_path)])
    assert all(1 not in finding.culprit_ranks for finding in report.findings)


def test_when_all_time_is_over_the_rest_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "of", classmethod(lambda cls, seconds: cls(0.0, 10.0)))
    clock = itertools.chain([0.0] * 2, itertools.repeat(20.0))
    monkeypatch.setattr("phalanx.sources.patience.time", SimpleNamespace(monotonic=lambda: next(clock)))
    for number in range(5):
        (tmp_path / f"part{number}.log").write_bytes(_log(3))
    report = diagnose_paths([str(tmp_path)])
    told = [item.what for item in report.not_checked if "time limit" in item.what]
    assert any(what.startswith("part0.log: read up to its first") for what in told)
    assert any(what.startswith("4 files not opened") for what in told)


def test_names_are_not_listed_without_end() -> None:
    assert never_opened(["a"]).what == "1 file not opened when the time limit was over: a"
    assert never_opened(list("abcd")).what.endswith("a, b, c, …")


def test_moments() -> None:
    assert not Patience.of(0).is_short
    assert not Patience.of(None).is_over
    assert Patience(whole_until=0.0).is_short
    assert Patience.of(1000).ends_until > Patience.of(1000).whole_until
