"""HDF5 files that break off in their first bytes are told as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.checkpoint_files.hdf5 import SIGNATURE, _end


@pytest.mark.parametrize("rest", [b"", b"\x00", b"\x02", b"\x00" * 5, b"\x01" * 30, b"\xff" * 60])
def test_a_header_that_breaks_off_tells_no_size(rest: bytes) -> None:
    assert _end(SIGNATURE + rest) is None


def test_the_size_of_a_whole_header() -> None:
    head = SIGNATURE + bytes([2, 8, 8, 0]) + bytes(16) + (4096).to_bytes(8, "little")
    assert _end(head) == 4096


def test_such_a_file_is_no_traceback(tmp_path: Path) -> None:
    from .made import look

    (tmp_path / "m.h5").write_bytes(SIGNATURE)
    assert look(tmp_path / "m.h5") is not None
