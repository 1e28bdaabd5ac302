"""NaN and infinity are counted as PyTorch counts them, in all number formats; masks are no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.checkpoint_files.model import Span, Tensor
from phalanx.checkpoint_files.values import scan
from tests.needs import needs_torch

pytestmark = needs_torch


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "complex64"]
)
def test_counts_are_those_of_torch(tmp_path: Path, dtype: str) -> None:
    import torch

    generator = torch.Generator().manual_seed(1)
    values = torch.randn(3_000_000 if dtype == "float32" else 5_000, generator=generator, dtype=torch.float32)
    values[7], values[8], values[-1] = float("nan"), float("inf"), float("-inf")
    values[100:120] = 3.3e38 if dtype in ("float32", "bfloat16", "float64") else 1.0  # large, and finite
    stored = values.to(getattr(torch, dtype))
    raw = (
        stored.view(torch.uint8) if dtype != "complex64" else torch.view_as_real(stored).contiguous().view(torch.uint8)
    )
    path = tmp_path / "values"
    path.write_bytes(raw.numpy().tobytes())
    real = torch.view_as_real(stored) if dtype == "complex64" else stored.to(torch.float64)
    found = scan([Tensor("x", dtype, tuple(stored.shape), span=Span(path, 0, path.stat().st_size))], lambda _: None)
    assert len(found.not_finite) == 1
    assert found.not_finite[0].nans == int(real.isnan().sum())
    assert found.not_finite[0].infinities == int(real.isinf().sum())


def test_two_tensors_in_one_storage_are_told_apart(tmp_path: Path) -> None:
    import torch

    values = torch.zeros(10)
    values[7] = float("nan")
    path = tmp_path / "values"
    path.write_bytes(values.numpy().tobytes())
    span = Span(path, 0, 40)
    tensors = [
        Tensor("a", "float32", (5,), span=span, start=0, size=20),
        Tensor("b", "float32", (5,), span=span, start=20, size=20),
    ]
    found = scan(tensors, lambda _: None)
    assert [(one.tensor.name, one.first) for one in found.not_finite] == [("b", 2)]


def test_a_mask_of_minus_infinity_is_no_fault(tmp_path: Path) -> None:
    import torch

    mask = torch.full((64, 64), float("-inf")).triu(1)
    path = tmp_path / "mask"
    path.write_bytes(mask.numpy().tobytes())
    assert not scan([Tensor("m", "float32", (64, 64), span=Span(path, 0, 64 * 64 * 4))], lambda _: None).not_finite
    mask[0, 0] = 1
    path.write_bytes(mask.numpy().tobytes())
    assert scan([Tensor("m", "float32", (64, 64), span=Span(path, 0, 64 * 64 * 4))], lambda _: None).not_finite
