"""Lines that divide by the number of ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.verification.evidence import Evidence
from phalanx.verification.sources import divides_by_ranks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("loss = loss / world_size", True),
        ("(loss / dist.get_world_size()).backward()", True),
        ("loss /= hvd.size()", True),
        ("loss = loss.div(n)", True),  # assigned from the world size below
        ("loss = loss / 2", False),
        ("loss = loss / accum", False),
    ],
)
def test_by_name_or_by_where_it_comes_from(tmp_path: Path, text: str, says: bool) -> None:
    (tmp_path / "train.py").write_text(f"{text}\nrank, n = dist.get_rank(), dist.get_world_size()\naccum = 2\n")
    assert divides_by_ranks(Evidence({}, 2, tmp_path), "train.py:1") is says
