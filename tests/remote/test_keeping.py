"""What a node may write into the bundle, and what not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phalanx.remote.keeping import Keeping
from phalanx.remote.link import LinkError, Message


@pytest.fixture
def keeping(tmp_path: Path) -> Keeping:
    made = Keeping(tmp_path / "bundle", print)
    made.writer.begin({"size": 4})
    made.begin_attempt(0, 4)
    return made


def send(keeping: Keeping, path: str, *pieces: bytes, ranks: tuple[int, ...] = (2, 3)) -> None:
    offset = 0
    for piece in pieces:
        keeping.file(ranks, Message("file", {"path": path, "offset": offset}, piece))
        offset += len(piece)
    keeping.file(ranks, Message("file", {"path": path, "offset": offset, "last": True}))


def test_a_file_comes_in_pieces_and_is_there_when_it_is_whole(keeping: Keeping) -> None:
    keeping.file((2, 3), Message("file", {"path": "attempt0/rank2/stacks-1.txt", "offset": 0}, b"one "))
    assert not (keeping.attempt / "rank2" / "stacks-1.txt").exists()
    send(keeping, "attempt0/rank2/stacks-1.txt", b"one ", b"two")
    assert (keeping.attempt / "rank2" / "stacks-1.txt").read_bytes() == b"one two"
    send(keeping, "attempt0/rank3/empty.json")
    assert (keeping.attempt / "rank3" / "empty.json").read_bytes() == b""


def test_results_are_kept_apart_from_the_evidence(keeping: Keeping) -> None:
    send(keeping, "attempt0/rank2/result.pickle", b"x")
    assert (keeping.results / "rank2" / "result.pickle").read_bytes() == b"x"
    assert not (keeping.attempt / "rank2" / "result.pickle").exists()
    assert keeping.job.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "path",
    [
        "attempt0/rank1/stacks-1.txt", "attempt1/rank2/stacks-1.txt", "../rank2/x", "/etc/x", "attempt0/rank2/../../x",
        "attempt0/rank2/a/b", "manifest.json", "attempt0/rank2/.hidden", "attempt0/rank2/exit.json", "attempt0/rank2/output.log",
        "attempt0/rank02/x", "attempt0/rank2/a;b",
    ],
)  # fmt: skip
def test_a_node_cannot_write_what_is_not_its_own(keeping: Keeping, path: str) -> None:
    before = set(keeping.folder.parent.rglob("*"))
    with pytest.raises(LinkError):
        send(keeping, path, b"x")
    assert set(keeping.folder.parent.rglob("*")) == before


def test_pieces_out_of_order_are_refused(keeping: Keeping) -> None:
    with pytest.raises(LinkError, match="order"):
        keeping.file((2, 3), Message("file", {"path": "attempt0/rank2/x.txt", "offset": 7}, b"x"))


def test_exits_are_numbered_over_all_nodes(keeping: Keeping) -> None:
    assert [keeping.exit(3, {"rank": 3, "order": 0}), keeping.exit(0, {"rank": 0, "order": 0})] == [0, 1]
    assert json.loads((keeping.attempt / "rank0" / "exit.json").read_text())["order"] == 1


def test_a_node_that_sends_too_much_costs_only_itself(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.remote.keeping._MOST_BYTES", 100)
    monkeypatch.setattr("phalanx.remote.keeping._MOST_OBSERVATIONS", 2)
    for _ in range(5):
        keeping.output((2, 3), 2, b"x" * 40)
        keeping.observation((2, 3), "h", Message("observation", {"what": "stall", "text": "t"}))
    keeping.output((0, 1), 0, b"y" * 40)
    assert (keeping.attempt / "rank2" / "output.log").stat().st_size == 80
    assert (keeping.attempt / "rank0" / "output.log").stat().st_size == 40
    assert len((keeping.attempt / "watch.jsonl").read_text().splitlines()) == 2
    with pytest.raises(LinkError, match="more than a node may"):
        send(keeping, "attempt0/rank2/stacks-1.txt", b"z" * 200)
