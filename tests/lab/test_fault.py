"""Faults: found by scanning, with parameters, and refused with a sentence where they make no sense."""

from __future__ import annotations

import pytest

from phalanx.lab import Bed, LabError
from phalanx.lab.fault import find_fault, load_faults
from tests.lab.beds import needs_beds

# What the lab must be able to break, whatever the files are called.
WANTED = {
    "master-addr-wrong", "master-addr-unset", "master-addr-unresolvable", "master-addr-unroutable", "master-addr-localhost", "master-port-wrong",
    "port-in-use", "foreign-service", "firewall-drop", "firewall-reject", "firewall-reset", "firewall-store-port", "firewall-high-ports",
    "firewall-pair", "firewall-one-way", "firewall-idle", "own-name-loopback", "own-name-stale", "own-name-missing", "interface-wrong",
    "interface-missing", "interface-differs", "interface-loopback", "variable-misspelt", "mtu-jumbo", "mtu-tunnel", "loss", "delay", "narrow-link",
    "nat", "ipv6-only-host", "dead-aaaa", "duplicate-address", "rank-duplicate", "rank-missing", "rank-out-of-range", "world-size-differs",
    "nnodes-differs", "rendezvous-id-differs", "open-files", "small-shm", "ssh-key", "ssh-host-key", "ssh-path", "docker0", "partition", "host-off",
    "one-way-block-in-job",
}  # fmt: skip


def test_all_faults_are_there_and_say_what_they_break() -> None:
    faults = load_faults()
    assert set(faults) >= WANTED
    for name, fault in faults.items():
        assert fault.about.endswith("."), name
        assert bool(fault.expected.cause) != name.startswith("healthy-"), name
        assert fault.expected.found_by in ("check", "run"), name


def test_parameters_are_read_in_their_types() -> None:
    fault, chosen = find_fault("loss:percent=10,host=h2")
    assert fault._typed(chosen) == {"percent": 10, "host": "h2"}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("nosuch", "there is no fault nosuch. phalanx lab faults lists all"),
        ("firewall", "there is no fault firewall; there are firewall-drop"),
        ("loss:percent", "write loss:parameter=value"),
    ],
)
def test_what_cannot_be_read_is_said(written: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        find_fault(written)


@needs_beds
def test_wrong_parameters_and_too_few_hosts_are_said() -> None:
    with Bed(2) as bed:
        fault, _ = find_fault("loss")
        with pytest.raises(LabError, match="loss has no parameter per; it has: host, percent"):
            fault.apply(bed, {"per": "3"})
        with pytest.raises(LabError, match="percent=much is not a int"):
            fault.apply(bed, {"percent": "much"})
        with pytest.raises(LabError, match="there is no host h5"):
            fault.apply(bed, {"host": "h5"})
        pair, _ = find_fault("firewall-pair")
        with pytest.raises(LabError, match="needs 3 hosts"):
            pair.apply(bed)
