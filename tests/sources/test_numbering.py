"""Numbers of lines: right where they are shown, in order everywhere, however little was counted."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.sources.numbering import FAR, Gaps, Numbers
from phalanx.sources.scanner import pieces

FILLER = b"2024-05-21 18:48:07 - INFO - iteration 100/ 500000 | lm loss: 2.5 | iteration (ms): 545.9\n"
ERROR = (
    b"Traceback (most recent call last):\n"
    b'  File "/home/user/job/train.py", line 88, in step\n'
    b"    loss.backward()\n"
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


def _log(seed: int, size: int) -> bytes:
    draw = random.Random(seed)
    lines = (b"x" * draw.choice((0, 5, 80, 300)) + b"\n" for _ in range(size // 90))
    return b"".join(lines)


def _true_line(data: bytes, offset: int) -> int:
    return 1 + data.count(b"\n", 0, offset)


@pytest.mark.parametrize("seed", range(6))
def test_numbers_rise_with_the_place_and_are_put_right(tmp_path: Path, seed: int) -> None:
    data = _log(seed, 6 << 20)
    path = tmp_path / "job.log"
    path.write_bytes(data)
    gaps = Gaps(path, 4096)
    draw = random.Random(seed)
    given: list[tuple[int, int]] = []
    base = 0
    for piece in pieces(io.BytesIO(data), 1 << 20, gaps):
        for _ in range(draw.choice((0, 0, 1, 8))):
            offset = draw.randrange(piece.limit)
            given.append((base + offset, piece.line_at(offset)))
        base += piece.limit
    assert gaps.true_line(10) == 10
    in_order = sorted(given)
    assert [line for _, line in in_order] == sorted(line for _, line in given)
    rising = [pair for index, pair in enumerate(given) if all(pair[0] >= other[0] for other in given[:index])]
    assert [gaps.true_line(line) for _, line in rising] == [_true_line(data, offset) for offset, _ in rising]
    assert any(line != _true_line(data, offset) for offset, line in given)  # not all was counted


def test_near_lines_are_as_far_apart_as_they_are() -> None:
    data = _log(1, 3 << 20)
    numbers = Numbers(data, 1, 0, Gaps(Path("not-read"), 4096))
    at = 2 << 20
    first = numbers.at(at)
    for step in (100, 60_000, FAR - 1):
        assert numbers.at(at + step) - first == data.count(b"\n", at, at + step)
        assert first - numbers.at(at - step) == data.count(b"\n", at - step, at)


def test_without_gaps_every_line_is_counted() -> None:
    data = _log(2, 3 << 20)
    for piece in pieces(io.BytesIO(data), 1 << 20):
        last = piece.line_at(piece.limit)
    assert last == _true_line(data, len(data))


def test_a_file_that_is_gone_has_no_line_numbers(tmp_path: Path) -> None:
    gaps = Gaps(tmp_path / "gone.log", 0)
    gaps.add(0, 1 << 20, 1)
    assert gaps.true_line(100) == 100
    assert gaps.true_line(2 << 20) == 0


@pytest.mark.parametrize("before", [1_000, 30_000, 60_000])
def test_evidence_of_a_large_log_stands_at_its_line(tmp_path: Path, before: int) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(FILLER * before + ERROR)
    report = diagnose_paths([str(path)])
    assert report.verdict is not None
    for item in report.verdict.evidence:
        assert before < item.line <= before + 4
        shown = dict(item.context)
        assert shown[before + 4].startswith("torch.OutOfMemoryError")
        assert shown[before + 1].startswith("Traceback")


def test_an_error_before_which_a_rank_trained_and_not_after_is_fatal(tmp_path: Path) -> None:
    """The survey of the tail and the hits in it are numbered from different places, and must agree."""
    path = tmp_path / "job.log"
    path.write_bytes(FILLER * 20_000 + ERROR + FILLER * 1_500)
    went_on = diagnose_paths([str(path)])
    path.write_bytes(FILLER * 20_000 + ERROR + b"waiting for the others\n" * 200)
    stopped = diagnose_paths([str(path)])
    assert stopped.verdict is not None
    assert stopped.verdict.symptom == "fail.out-of-memory"
    assert went_on.verdict is None or went_on.verdict.symptom != "fail.out-of-memory"
