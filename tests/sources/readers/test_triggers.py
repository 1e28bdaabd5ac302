"""A reader is woken by its literals: one that stands in a line of every step costs more than all the rest of reading."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from phalanx.sources import readers

EVERY_STEP = (
    " iteration       20/  500000 | consumed samples:        10240 | elapsed time per iteration (ms): 812.3 | learning rate: 1.500E-04 | global batch size:   512"
    " | lm loss: 9.143215E+00 | loss scale: 1.0 | grad norm: 1.024 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "step 1200 loss 2.3143 lr 0.0003 grad_norm 0.91 tokens/s 18210 mem 61.2GiB",
    "Epoch 3/10: 100%|##########| 782/782 [01:03<00:00, 12.3it/s, loss=0.412]",
    "{'loss': 0.6931, 'grad_norm': 1.2, 'learning_rate': 4.9e-05, 'epoch': 0.12}",
    "782/782 [==============================] - 12s 15ms/step - loss: 0.4123 - accuracy: 0.8812",
    "Train Epoch: 2 [25600/60000 (43%)]\tLoss: 0.241093",
    "Epoch: [3][ 40/391]\tTime  0.214 ( 0.231)\tData  0.001 ( 0.012)\tLoss 1.2345e+00 (1.3e+00)\tAcc@1  62.50 ( 60.12)",
    "INFO:tensorflow:loss = 2.31, step = 1200 (8.1 sec)",
    "INFO:tensorflow:global_step/sec: 12.3",
)


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(readers.__path__)])
def test_no_reader_is_woken_by_a_line_of_every_step(name: str) -> None:
    triggers = getattr(importlib.import_module(f"{readers.__name__}.{name}"), "TRIGGERS", ())
    assert not [(trigger, line) for trigger in triggers for line in EVERY_STEP if trigger in line]
