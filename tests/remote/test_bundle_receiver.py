"""What a node may write into the bundle, and what not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phalanx.remote.bundle_receiver import BundleReceiver
from phalanx.remote.link import LinkError, Message


@pytest.fixture
def receiver(tmp_path: Path) -> BundleReceiver:
    made = BundleReceiver(tmp_path / "bundle", print)
    made.writer.begin({"size": 4})
    made.begin_attempt(0, 4)
    return made


def send(receiver: BundleReceiver, path: str, *pieces: bytes, ranks: tuple[int, ...] = (2, 3)) -> None:
    offset = 0
    for piece in pieces:
        receiver.file(ranks, Message("file", {"path": path, "offset": offset}, piece))
        offset += len(piece)
    receiver.file(ranks, Message("file", {"path": path, "offset": offset, "last": True}))


def test_a_file_comes_in_pieces_and_is_there_when_it_is_whole(receiver: BundleReceiver) -> None:
    receiver.file((2, 3), Message("file", {"path": "attempt0/rank2/stacks-1.txt", "offset": 0}, b"one "))
    assert not (receiver.attempt / "rank2" / "stacks-1.txt").exists()
    send(receiver, "attempt0/rank2/stacks-1.txt", b"one ", b"two")
    assert (receiver.attempt / "rank2" / "stacks-1.txt").read_bytes() == b"one two"
    send(receiver, "attempt0/rank3/empty.json")
    assert (receiver.attempt / "rank3" / "empty.json").read_bytes() == b""


def test_results_are_kept_apart_from_the_evidence(receiver: BundleReceiver) -> None:
    send(receiver, "attempt0/rank2/result.pickle", b"x")
    assert (receiver.results / "rank2" / "result.pickle").read_bytes() == b"x"
    assert not (receiver.attempt / "rank2" / "result.pickle").exists()
    assert receiver.job.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "path",
    [
        "attempt0/rank1/stacks-1.txt", "attempt1/rank2/stacks-1.txt", "../rank2/x", "/etc/x", "attempt0/rank2/../../x",
        "attempt0/rank2/a/b", "manifest.json", "attempt0/rank2/.hidden", "attempt0/rank2/exit.json", "attempt0/rank2/output.log",
        "attempt0/rank02/x", "attempt0/rank2/a;b",
    ],
)  # fmt: skip
def test_a_node_cannot_write_what_is_not_its_own(receiver: BundleReceiver, path: str) -> None:
    before = set(receiver.folder.parent.rglob("*"))
    with pytest.raises(LinkError):
        send(receiver, path, b"x")
    assert set(receiver.folder.parent.rglob("*")) == before


def test_pieces_out_of_order_are_refused(receiver: BundleReceiver) -> None:
    with pytest.raises(LinkError, match="order"):
        receiver.file((2, 3), Message("file", {"path": "attempt0/rank2/x.txt", "offset": 7}, b"x"))


def test_exits_are_numbered_over_all_nodes(receiver: BundleReceiver) -> None:
    assert [receiver.exit(3, {"rank": 3, "order": 0}), receiver.exit(0, {"rank": 0, "order": 0})] == [0, 1]
    assert json.loads((receiver.attempt / "rank0" / "exit.json").read_text())["order"] == 1


def test_a_node_that_sends_too_much_costs_only_itself(
    receiver: BundleReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phalanx.remote.bundle_receiver._MOST_BYTES", 100)
    monkeypatch.setattr("phalanx.remote.bundle_receiver._MOST_OBSERVATIONS", 2)
    for _ in range(5):
        receiver.output((2, 3), 2, b"x" * 40)
        receiver.observation((2, 3), "h", Message("observation", {"what": "stall", "text": "t"}))
    receiver.output((0, 1), 0, b"y" * 40)
    assert (receiver.attempt / "rank2" / "output.log").stat().st_size == 80
    assert (receiver.attempt / "rank0" / "output.log").stat().st_size == 40
    assert len((receiver.attempt / "watch.jsonl").read_text().splitlines()) == 2
    with pytest.raises(LinkError, match="more than a node may"):
        send(receiver, "attempt0/rank2/stacks-1.txt", b"z" * 200)
