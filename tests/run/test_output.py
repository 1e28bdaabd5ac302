"""Real pipes in; bundle, watch and screen out."""

from __future__ import annotations

import os
import time

import pytest

from phalanx.model.ranks import ranges
from phalanx.run import output as module
from phalanx.run.fold import Said
from phalanx.run.output import Output


class Paper:
    """Stands where the screen is and keeps what it is shown."""

    shows = True

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes, bool]] = []

    def show(self, lines: list[Said], is_alone: bool) -> None:
        self.lines += [(ranges(said.ranks), said.text, said.is_error) for said in lines]


class Keeper:
    def __init__(self) -> None:
        self.written: dict[int, bytes] = {}
        self.lines: list[tuple[int, bytes]] = []

    def write_output(self, number: int, rank: int, data: bytes, is_error: bool) -> None:
        self.written[rank] = self.written.get(rank, b"") + data

    def heard(self, rank: int, line: bytes) -> None:
        self.lines.append((rank, line))


class Bench:
    """An output with pipes that a test writes to."""

    def __init__(self, size: int) -> None:
        self.paper, self.keeper = Paper(), Keeper()
        self.output = Output(0, range(size), self.paper, self.keeper)  # type: ignore[arg-type]
        self.pipes = [self.output.open_pipes(rank) for rank in range(size)]

    def write(self, rank: int, data: bytes, is_error: bool = False) -> None:
        os.write(self.pipes[rank][is_error], data)
        self.output.pump(0)

    def close(self) -> None:
        for pair in self.pipes:
            for end in pair:
                os.close(end)
        self.output.close()


def test_lines_are_kept_whole_however_they_come() -> None:
    bench = Bench(1)
    for piece in (b"st", b"ep 1\nst", b"ep 2\n"):
        bench.write(0, piece)
    bench.close()
    assert bench.keeper.written[0] == b"step 1\nstep 2\n"
    assert bench.keeper.lines == [(0, b"step 1"), (0, b"step 2")]
    assert [line[1] for line in bench.paper.lines] == [b"step 1", b"step 2"]


def test_the_last_words_without_a_line_end_are_kept() -> None:
    bench = Bench(1)
    bench.write(0, b"Segmentation fau")
    bench.close()
    assert bench.keeper.lines == [(0, b"Segmentation fau")]


def test_the_beginning_of_a_line_is_written_when_nothing_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE", 0.01)
    bench = Bench(1)
    bench.write(0, b"loading ")
    time.sleep(0.05)
    bench.output.pump(0)
    assert bench.keeper.written[0] == b"loading "
    bench.write(0, b"done\n")
    bench.close()
    assert bench.keeper.written[0] == b"loading done\n"


def test_progress_bars_are_shown_once_and_kept_whole() -> None:
    bench = Bench(1)
    painted = b"".join(b"\r%d%%" % percent for percent in range(100))
    bench.write(0, painted)
    bench.write(0, b"\r100%\nnext\r\n")
    bench.close()
    assert bench.keeper.written[0].startswith(painted[:-4])
    assert [line[1] for line in bench.paper.lines][-2:] == [b"100%", b"next"]
    assert len(bench.paper.lines) <= 4


def test_streams_and_ranks_are_told_apart() -> None:
    bench = Bench(2)
    bench.write(0, b"out\n")
    bench.write(1, b"out\n")
    bench.write(1, b"err\n", is_error=True)
    bench.close()
    assert bench.paper.lines == [("0-1", b"out", False), ("1", b"err", True)]


def test_tracebacks_that_pytorch_marked_by_rank_fold() -> None:
    bench = Bench(2)
    for rank in range(2):
        bench.write(rank, b"[rank%d]: ValueError: x\n" % rank, is_error=True)
    bench.close()
    assert bench.paper.lines == [("0-1", b"ValueError: x", True)]
    assert bench.keeper.written[1] == b"[rank1]: ValueError: x\n"


def test_secrets_reach_neither_bundle_nor_screen() -> None:
    bench = Bench(1)
    bench.write(
        0, b"api_key=abcdef123456\n-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----\nok\n"
    )
    bench.close()
    assert b"abcdef123456" not in bench.keeper.written[0]
    assert b"MIIabc" not in bench.keeper.written[0]
    assert bench.keeper.written[0].endswith(b"ok\n")


def test_bytes_that_are_no_text_pass_unharmed() -> None:
    bench = Bench(1)
    bench.write(0, b"\xff\xfe token \x00 x\n")
    bench.close()
    assert bench.keeper.written[0] == b"\xff\xfe token \x00 x\n"


def test_a_flood_is_carried_in_reasonable_processor_time() -> None:
    bench = Bench(4)
    lines = b"".join(b"step %d loss 0.%d\n" % (number, number) for number in range(2000))
    began = time.process_time()
    for _ in range(10):
        for rank in range(4):
            data = memoryview(lines)
            while data:
                sent = os.write(bench.pipes[rank][0], data[:60000])
                data = data[sent:]
                bench.output.pump(0)
    bench.close()
    assert len(bench.keeper.lines) == 80_000
    assert time.process_time() - began < 8  # measured: under 0.5 s on an idle machine
