"""A rank that may not have all the address space that it wants."""

from __future__ import annotations

from pathlib import Path

from phalanx.run.watch.limits import Limits


def process(folder: Path, pid: int, limit: str) -> None:
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "limits").write_text(
        f"Limit                     Soft Limit           Hard Limit           Units\nMax address space         {limit}            unlimited            bytes\n"
    )
    (folder / str(pid) / "status").write_text("Name:\tpython\nVmPeak:\t 1048576 kB\n")


def test_a_limit_is_told_of_who_has_one(tmp_path: Path) -> None:
    process(tmp_path, 10, "unlimited")
    process(tmp_path, 11, "1288490188")
    limits = Limits(tmp_path)
    limits.note({0: 10, 1: 11, 2: 12})  # the last is gone already
    assert limits.tell(0) == limits.tell(2) == []
    (told,) = limits.tell(1)
    assert told.text == "rank 1 may use 1.2 GiB of address space (ulimit -v), and had taken 1.0 GiB"
    assert told.facts[0].fields == {"limit": "1.2 GiB", "peak": "1.0 GiB"}
