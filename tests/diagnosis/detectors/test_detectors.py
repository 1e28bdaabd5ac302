"""The detectors as a package: found by scanning, and speaking in declared facts only."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnosis import detectors as package
from phalanx.diagnosis.detectors import Job, detectors
from phalanx.knowledge import load_rules
from phalanx.model.facts import fact_types


def test_every_module_but_the_protocol_is_a_detector_with_a_test() -> None:
    folder, tests = Path(package.__path__[0]), Path(__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "protocol"}
    assert detectors().keys() == modules
    assert modules == {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")} - {"detectors"}


def test_an_empty_job_has_no_anomalies() -> None:
    assert [event for detect in detectors().values() for event in detect(Job((), ()))] == []


def test_some_rule_asks_for_each_fact_of_the_logs() -> None:
    asked = {spec.fact.id for rule in load_rules() for spec in rule.evidence if spec.fact is not None}
    made = {name for name in fact_types() if name.startswith(("metric.", "output.", "startup.", "compile."))}
    assert made <= asked
