"""The job as it travels to a node."""

import json
from dataclasses import fields, replace

import pytest

from phalanx.run.spec import JobSpec, OnStall

SPEC = JobSpec(
    command=("train.py", "--lr", "0.1"), size=4, environment={"A": "b"}, roles={"worker": 4}, on_stall=OnStall.ABORT
)


def test_it_survives_a_trip_as_json() -> None:
    assert JobSpec.from_message(json.loads(json.dumps(SPEC.to_message()))) == SPEC


def test_every_field_travels() -> None:
    assert set(SPEC.to_message()) == {one.name for one in fields(JobSpec)}
    assert JobSpec.from_message(json.loads(json.dumps(replace(SPEC, grace=1.5).to_message()))).grace == 1.5


def test_a_setting_of_another_release_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="new_option"):
        JobSpec.from_message({**SPEC.to_message(), "new_option": 1})
