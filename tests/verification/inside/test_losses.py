"""How a loss is composed, as its graph tells it; and sketches that add up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
SOURCE = Path(__file__).parents[3] / "src" / "phalanx"
PATHS = [str(SOURCE / "verification" / "inside"), str(SOURCE / "replay" / "inside")]
CODE = """
import torch, torch.nn as nn, torch.nn.functional as F
from phalanx_verify.losses import composition
from phalanx_verify.sketches import sketch
from phalanx_verify.marks import mark_of, rows_of

x, y = torch.randn(8, 4, requires_grad=True), torch.randint(0, 4, (8,))
def close(found, factor, kind):
    assert found[1] == kind and abs(found[0] - factor) < 1e-6, (found, factor, kind)
close(composition(F.cross_entropy(x, y)), 1.0, "mean")
close(composition(F.cross_entropy(x, y) / 4), 0.25, "mean")
close(composition(3 * F.mse_loss(x, torch.zeros(8, 4))), 3.0, "mean")
close(composition((x ** 2).mean() / 2), 0.5, "mean")
close(composition(F.cross_entropy(x, y, reduction="sum") / 16), 1 / 16, "sum")
close(composition((F.cross_entropy(x, y) + 0.01 * x.abs().sum()) / 2), 0.5, "mean")
close(composition(F.cross_entropy(x, y) * torch.tensor(1024.0)), 1024.0, "mean")
assert composition((x ** 2).mean() * x.max())[0] is None

before = torch.get_rng_state()
for size in (3, 4096, 10_000):
    one, two = torch.randn(size), torch.randn(size)
    a, b, both = sketch(one), sketch(two), sketch((one + two) / 2)
    for place in range(2):
        assert abs((a[place] + b[place]) / 2 - both[place]) < 1e-3, size
    assert abs(a[2] - one.norm().item()) < 1e-2
    assert sketch(one) == sketch(one.clone()) and sketch(one)[:2] != sketch(one.flip(0))[:2]
torch.set_rng_state(before)
first = torch.rand(3)
torch.set_rng_state(before)
sketch(torch.ones(5000)), mark_of(x)
assert torch.equal(first, torch.rand(3)), "the script's random numbers are not touched"
rows = rows_of({"x": x, "y": y, "name": "batch"})
assert len(rows) == 8 and rows_of((x[2:3], y[2:3])) == rows[2:3]
assert sketch(torch.zeros(0)) is None and mark_of([x]) != mark_of([x + 1])
print("ok")
"""


def test_losses_sketches_and_marks() -> None:
    code = f"import sys; sys.path[:0] = {PATHS!r}\n{CODE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "ok", done.stderr
