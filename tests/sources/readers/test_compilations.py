"""Compilations that frameworks log."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnosis import _collector  # the readers as a diagnosis uses them
from phalanx.sources import find_inputs


def test_names_of_functions(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        "Finished XLA compilation of jit(train_step) in 0.11 sec\n"
        "Finished XLA compilation of jit(_where) in 0.01 sec\n"
        "Finished XLA compilation of update in 1.5 sec\n"
        "WARNING:tensorflow:5 out of the last 5 calls to <function Trainer.step at 0x7f00> triggered tf.function retracing.\n"
    )
    seen = _collector(()).collect(find_inputs([str(log)])[0])
    told = [(event.source, event.data["what"]) for event in seen.events]
    assert told == [("compilation", "train_step"), ("compilation", "update"), ("retracing", "Trainer.step")]
