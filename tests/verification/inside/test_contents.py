"""What datasets hold."""

from __future__ import annotations

import sys

import pytest

from phalanx.replay.record import INSIDE as RECORDER
from phalanx.verification.observe import INSIDE

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (RECORDER, INSIDE):
        monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("sitecustomize", None)


def test_parts_of_one_dataset_have_nothing_in_common_and_orders_do_not_matter() -> None:
    from phalanx_verify.contents import contents
    from torch.utils.data import Subset, TensorDataset

    rows = torch.arange(64.0).reshape(32, 2)
    whole = contents(TensorDataset(rows, rows[:, :1]))
    assert whole == contents(TensorDataset(rows.flip(0), rows[:, :1]))
    even, odd = contents(TensorDataset(rows[::2])), contents(Subset(TensorDataset(rows), range(1, 32, 2)))
    assert not set(even) & set(odd)
    assert set(even) | set(odd) == set(whole)


def test_lists_own_classes_and_what_cannot_be_known() -> None:
    from phalanx_verify.contents import contents

    class Own:
        def __init__(self, texts: list[str]) -> None:
            self.texts = texts

        def __len__(self) -> int:
            return len(self.texts)

    assert contents(Own(["a", "b", "c"])) == contents(["c", "b", "a"])
    assert contents(Own(["a"] * 8)) is None, "rows that look alike tell nothing"
    assert contents(object()) is None
