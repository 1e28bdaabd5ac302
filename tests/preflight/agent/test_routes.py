"""The way that the kernel would send, with and without the rules that look at the source."""

from __future__ import annotations

from typing import Any

from phalanx.preflight.agent.routes import _is_in, routes, rules_of


def test_a_network_holds_an_address() -> None:
    assert _is_in("10.77.0.11", bytes([10, 77, 0, 0]), 24)
    assert not _is_in("10.78.0.11", bytes([10, 77, 0, 0]), 24)


def test_this_machine_has_no_rule_for_its_loopback() -> None:
    assert rules_of("127.0.0.1") == []
    told: list[dict[str, Any]] = []
    routes({"pairs": [["127.0.0.1", "127.0.0.1"]]}, told.append)
    assert told[0]["way"]["interface"] == told[0]["plain"]["interface"] == "lo"
