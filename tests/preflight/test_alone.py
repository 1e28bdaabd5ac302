"""What a rank says of its own way to the store when it meets nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import phalanx
from phalanx.lab import Bed
from tests.lab.beds import needs_beds

pytestmark = needs_beds
_ASK = """
import json, sys
from phalanx.preflight.alone import seen_from_here
found = seen_from_here(("10.77.0.10", 29500), alone=True, size=3)
print(json.dumps([[one.fact.id, list(one.accused), dict(one.fact.fields)] for one in found], default=str))
"""


def seen(bed: Bed) -> list[tuple[str, list[str], dict[str, object]]]:
    command = ["env", f"PYTHONPATH={Path(phalanx.__file__).parents[1]}", sys.executable, "-c", _ASK]
    done = bed["h1"].start(command, stdout=subprocess.PIPE)
    return [tuple(one) for one in json.loads(done.communicate(timeout=60)[0])]  # type: ignore[misc]


def pull_the_cable(bed: Bed) -> None:
    bed.switch_ip(f"link set {bed['h1'].port} nomaster")


def filter_output(bed: Bed) -> None:
    bed["h1"].filter("tcp dport 29500 drop", hook="output")


def add_rule(bed: Bed) -> None:
    bed["h1"].ip("rule add from 10.77.0.11 table 77 priority 10", "route add blackhole default table 77")


def nothing(bed: Bed) -> None:
    """Nobody listens at the store's port."""


@pytest.mark.parametrize(
    ("broken", "fact", "field", "value"),
    [
        (pull_the_cable, "check.host-cut-off", "interface", "eth0"),
        (filter_output, "check.outgoing-blocked", "places", "10.77.0.10:29500"),
        (add_rule, "check.policy-route", "priority", 10),
        (nothing, "check.meeting-place-not-reached", "refused", True),
    ],
)
def test_the_cause_on_this_host_is_named(broken: Callable[[Bed], None], fact: str, field: str, value: object) -> None:
    with Bed(2) as bed:
        broken(bed)
        ((found, accused, fields),) = seen(bed)
    assert (found, accused, fields[field]) == (fact, ["h1"], value)
