"""Leaving out a rule, a detector or a strategy gives the report without it; nothing else changes."""

from __future__ import annotations

from phalanx.blame.engine import all_strategies
from phalanx.diagnosis.ablation import Part, all_parts, reports_without
from phalanx.diagnosis.detectors import detectors
from phalanx.knowledge import load_bare_rules
from phalanx.sources import from_text

RULES = load_bare_rules()


def reports(files: dict[str, str]) -> dict[Part | None, str | None]:
    inputs = [from_text(name, text) for name, text in files.items()]
    made = reports_without(inputs, RULES)
    return {part: report.verdict.cause if report.verdict else None for part, report in made}


def test_without_the_rule_that_speaks_another_verdict_comes() -> None:
    found = reports({"job.log": "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"})
    assert found[None] == "device-memory-exhausted"
    assert found[Part("rule", "OOM001")] != "device-memory-exhausted"
    assert Part("rule", "SEG001") not in found, "a rule that did not fire changes nothing"


def test_without_the_detector_its_fact_is_not_judged() -> None:
    steps = [f"epoch 1 step {step} loss 2.302585" for step in range(40)]
    found = reports({"job.log": "\n".join(steps)})
    assert found[None] is not None
    assert found[Part("detector", "metric_anomalies")] is None
    assert Part("detector", "summed_metrics") not in found


def test_every_detector_strategy_and_rule_is_a_part() -> None:
    parts = all_parts(RULES)
    assert len(parts) == len(set(parts)) == len(detectors()) + len(all_strategies()) + len(RULES)
