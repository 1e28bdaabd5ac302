"""Beds that the check was not made for: a part of them as a test, one for each class; `python bench/check_unseen.py` scores them all."""

from __future__ import annotations

import pytest

from tests.lab.beds import needs_beds
from tests.preflight import unseen_networks, unseen_settings  # noqa: F401 (they write their beds into BEDS)
from tests.preflight.unseen import BEDS, look_at, verdict_on

pytestmark = needs_beds
BROKEN = (
    "ipv6-high-ports-dropped", "one-of-two-paths-dead", "one-new-connection-a-second", "proxy-resets", "own-name-is-of-the-vpn",
    "second-interface-of-the-network-is-unplugged", "cloned-machine", "alias-of-the-master-differs", "port-of-a-worker-dropped",
    "worker-unknown-to-one-host", "horovod-rendezvous-at-nobody", "port-held-by-a-connection", "firewall-and-world-size", "ten-ephemeral-ports",
)  # fmt: skip
HEALTHY = (
    "load-balancer-before-the-master", "bonds-and-containers", "second-network-and-vpn", "names-have-ipv6-first", "endpoint-of-ipv6",
    "line-of-the-first-node", "tasks-of-tensorflow", "closed-but-for-the-job",
)  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found(name: str) -> None:
    report, _ = look_at(BEDS[name])
    assert verdict_on(BEDS[name], report) == "found", [finding.evidence[0].text for finding in report.findings]


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_only_odd_gives_no_finding(name: str) -> None:
    report, _ = look_at(BEDS[name])
    assert [finding.evidence[0].text for finding in report.findings] == []


def test_no_bed_is_without_a_name_for_its_fault() -> None:
    assert set(BROKEN) <= {name for name, bed in BEDS.items() if bed.causes}
    assert set(HEALTHY) <= {name for name, bed in BEDS.items() if not bed.causes}
