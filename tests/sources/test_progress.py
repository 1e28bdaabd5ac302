"""Lines that show training, and lines that only look like it."""

from __future__ import annotations

import pytest

from phalanx.sources.progress import position_of, shows_end


@pytest.mark.parametrize(
    ("line", "position"),
    [
        ("epoch 3 step 811 loss 0.21", (3, 811)),
        ("Epoch 2/10", (2, -1)),
        ("Epoch: [4][ 120/500] Loss 1.2", (4, -1)),
        ("step 40 loss nan", (-1, 40)),
        ("  12/100 [==>...........] - ETA: 3s - loss: 0.6931", (-1, 12)),
        ("2024-01-02 10:00:00 INFO iteration 500 | lm loss: 1.2E+00", (-1, 500)),
        ("train_loss=0.33", (-1, -1)),
    ],
)
def test_progress(line: str, position: tuple[int, int]) -> None:
    assert position_of(line) == position


@pytest.mark.parametrize(
    "line",
    [
        '  File "train.py", line 40, in train_step',
        "RuntimeError: loss 3.0 is out of range at step 4",
        "Downloading: 100%|####| 10/10 [00:01<00:00, 8.2MB/s]",
        "loading checkpoint",
        "def loss(x): return 1.0",
        "    model.fit(data, epochs=3, verbose=2, callbacks=[cb])",
        "    train(model, epochs=3)",
        "step by step guide",
        "",
    ],
)
def test_no_progress(line: str) -> None:
    assert position_of(line) is None


@pytest.mark.parametrize(
    "line", ["training finished", "Training complete.", "done", "Job succeeded", "[INFO] training done in 3 s"]
)
def test_end(line: str) -> None:
    assert shows_end(line)


@pytest.mark.parametrize("line", ["abandoned", "not done yet", "we are done for: RuntimeError", "3 of 4 downloads"])
def test_no_end(line: str) -> None:
    assert not shows_end(line)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("sign", [",", ".,", "-:", "a,"])
def test_a_line_of_commas_is_not_divided_in_all_ways(sign: str) -> None:
    assert not shows_end((sign * 190)[:185] + " none")
