"""Comparisons of facts that need no real host: versions, clocks, interfaces of different networks, proxies."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from phalanx.model.facts import sentence_of
from phalanx.preflight.agreement import address_for_others
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.probes import (
    advertised,
    clocks,
    duplicate_addresses,
    firewall,
    launch,
    limits,
    named_interfaces,
    port_supply,
    proxies,
    versions,
)
from phalanx.preflight.tf_cluster import Cluster, read_cluster
from tests.preflight.made import host_facts, interface

OPTIONS = CheckOptions()


def said(module: object, *all_facts: HostFacts) -> list[CheckFact]:
    found = module.examine(all_facts, OPTIONS)  # type: ignore[attr-defined]
    return [item for item in found if isinstance(item, CheckFact)]


def test_the_host_with_another_version_is_named() -> None:
    old = {"python": "3.11.2", "packages": {"torch": "2.12.1"}}
    (check_fact,) = said(versions, host_facts("h1"), host_facts("h2"), host_facts("h3", versions=old))
    assert check_fact.accused == ("h3",)
    assert check_fact.fact.fields["told"] == "2.13.0 on h1 and h2, 2.12.1 on h3"
    assert (check_fact.fact.fields["common"], check_fact.fact.fields["odd"]) == ("2.13.0", "h3")


def test_of_two_versions_nobody_is_accused() -> None:
    (check_fact,) = said(
        versions, host_facts("h1"), host_facts("h2", versions={"python": "3.10.1", "packages": {"torch": "2.13.0"}})
    )
    assert check_fact.accused == ()


def test_a_framework_that_one_host_lacks() -> None:
    (check_fact,) = said(
        versions, host_facts("h1"), host_facts("h2"), host_facts("h3", versions={"python": "3.11.9", "packages": {}})
    )
    assert check_fact.accused == ("h3",)
    assert "torch is not installed" in sentence_of(check_fact.fact)


@pytest.mark.parametrize(
    ("ahead", "accused"), [((0.0, 0.2, -0.3), None), ((0.0, 42.0, 0.1), "h2"), ((0.0, 0.1, -30.0), "h3")]
)
def test_clocks(ahead: tuple[float, ...], accused: str | None) -> None:
    hosts = [replace(host_facts(f"h{number}"), clock_ahead=one) for number, one in enumerate(ahead, 1)]
    found = said(clocks, *hosts)
    assert [check_fact.accused for check_fact in found] == ([(accused,)] if accused else [])


def test_a_slow_way_is_no_wrong_clock() -> None:
    hosts = [
        replace(host_facts(f"h{number}"), clock_ahead=one, clock_error=error)
        for number, one, error in ((1, 0.0, 0.0), (2, 9.0, 9.0))
    ]
    assert said(clocks, *hosts) == []


def test_interfaces_in_different_networks_though_they_share_one() -> None:
    both = {"eth0": interface("10.0.0.{}/24"), "eth1": interface("192.168.7.{}/24")}

    def host(number: int, chosen: str) -> HostFacts:
        own = {name: interface(facts["addresses"][0].format(number)) for name, facts in both.items()}
        return host_facts(f"h{number}", {"GLOO_SOCKET_IFNAME": chosen}, own)

    (check_fact,) = said(named_interfaces, host(1, "eth0"), host(2, "eth0"), host(3, "eth1"))
    assert check_fact.accused == ("h3",)
    assert check_fact.fact.fields["good"] == "eth0"
    assert said(named_interfaces, host(1, "eth0"), host(2, "eth0")) == []


def test_interfaces_of_other_names_in_one_network_are_right() -> None:
    first = host_facts("h1", {"GLOO_SOCKET_IFNAME": "eth0"}, {"eth0": interface("10.0.0.1/24")})
    second = host_facts("h2", {"GLOO_SOCKET_IFNAME": "ens3"}, {"ens3": interface("10.0.0.2/24")})
    assert said(named_interfaces, first, second) == []


def test_an_interface_that_is_down() -> None:
    down = {"eth0": interface("10.0.0.1/24"), "eth1": interface(up=False)}
    (check_fact,) = said(named_interfaces, host_facts("h1", {"NCCL_SOCKET_IFNAME": "eth1"}, down))
    assert sentence_of(check_fact.fact) == "NCCL_SOCKET_IFNAME=eth1, but eth1 on h1 is down"


def test_families_that_do_not_mix() -> None:
    six = {"own": "h2", "asked": {"h2": {"addresses": ["fd00::2"], "bindable": ["fd00::2"]}}}
    found = said(advertised, host_facts("h1"), host_facts("h2", names=six))
    assert [sentence_of(check_fact.fact) for check_fact in found] == [
        "Gloo would use IPv6 on h2 (fd00::2) but IPv4 on h1 (10.0.0.1)"
    ]


def test_the_same_hardware_address_in_one_network() -> None:
    mac = "02:00:00:00:00:02"
    hosts = [host_facts(f"h{n}", {}, {"eth0": interface(f"10.0.0.{n}/24", mac=mac)}) for n in (1, 2)]
    assert [check_fact.accused for check_fact in said(duplicate_addresses, *hosts)] == [("h1", "h2")]
    apart = [host_facts(f"h{n}", {}, {"eth0": interface(f"10.0.{n}.1/24", mac=mac)}) for n in (1, 2)]
    assert said(duplicate_addresses, *apart) == []


def test_many_ranks_need_many_files() -> None:
    few = host_facts("h1", {"RANK": "0", "WORLD_SIZE": "4096"})
    (check_fact,) = said(limits, few)
    assert "a job of 4096 ranks can need 16640" in sentence_of(check_fact.fact)
    assert said(limits, host_facts("h1", {"RANK": "0", "WORLD_SIZE": "8"})) == []


def test_a_rank_exported_beside_the_launchers() -> None:
    ranks = [host_facts(f"h{n}", {"RANK": "0", "OMPI_COMM_WORLD_RANK": str(n)}) for n in (0, 1)]
    assert [check_fact.accused for check_fact in said(launch, *ranks)] == [("h1",)]


@pytest.mark.parametrize(
    ("rule", "names_it"),
    [
        ("tcp dport 29500 drop", True),
        ("tcp dport { 22, 29500 } reject with tcp reset", True),
        ("tcp dport 29000-30000 drop", True),
        ("-p tcp -m multiport --dports 80,29500 -j DROP", True),
        ("-p tcp --dport 29000:30000 -j REJECT", True),
        ("tcp dport 22 drop", False),
        ("tcp dport != 29500 drop", False),
        ("ct state invalid drop", False),
        ("meta length > 1400 drop", False),
        ("ip saddr 192.0.2.1 tcp dport 29500 drop", False),
        ("-s 192.0.2.1/32 -p tcp --dport 29500 -j DROP", False),
    ],
)
def test_rules_of_firewalls_that_name_a_port(rule: str, names_it: bool) -> None:
    assert firewall.names_port(rule, 29500) is names_it


@pytest.mark.parametrize(
    ("host", "exceptions", "excepted"),
    [
        ("node0", "", False),
        ("node0", "localhost,node0", True),
        ("node0.cluster", ".cluster", True),
        ("10.0.0.1", "10.0.0.0/8", True),
        ("node0", "*", True),
    ],
)
def test_proxies(host: str, exceptions: str, excepted: bool) -> None:
    assert proxies.is_excepted(host, exceptions) is excepted


def test_an_own_name_that_nobody_asks_for_may_be_missing() -> None:
    lost = {"own": "h2", "asked": {"h2": {"addresses": [], "bindable": [], "error": "unknown"}}}
    for variables in ({"GLOO_SOCKET_IFNAME": "eth0"}, {"TF_CONFIG": "{}"}):
        assert said(advertised, host_facts("h1"), host_facts("h2", variables, names=lost)) == []
    (check_fact,) = said(advertised, host_facts("h1"), host_facts("h2", names=lost))
    assert check_fact.accused == ("h2",)
    assert said(advertised, host_facts("h2", names=lost)) == []  # on one machine it does not matter


def test_versions_seen_by_another_interpreter_than_the_jobs_are_only_possible() -> None:
    old = {"python": "3.11.2", "packages": {"torch": "2.12.1"}}
    options = CheckOptions(same_interpreter=False)
    found = list(versions.examine([host_facts("h1"), host_facts("h2"), host_facts("h3", versions=old)], options))
    assert isinstance(found[0], CheckFact)
    assert found[0].confidence == "possible"


def test_ports_and_places_that_the_kernel_has_left() -> None:
    enough = {"range": [32768, 60999], "taken": 300, "queue": 4096}
    assert said(port_supply, host_facts("h1", ports=enough), host_facts("h2", ports=enough)) == []
    (check_fact,) = said(port_supply, host_facts("h1", ports=enough), host_facts("h2", ports=enough | {"taken": 28200}))
    assert check_fact.accused == ("h2",)
    assert "only 32 of 28232 ports" in sentence_of(check_fact.fact)
    short = enough | {"queue": 8}
    (check_fact,) = said(port_supply, host_facts("h1", ports=enough), host_facts("h2", ports=short))
    assert check_fact.accused == ("h2",)
    assert said(port_supply, host_facts("h2", ports=short)) == []  # on one machine they come one after the other


def test_the_address_to_advise_is_in_a_network_that_others_have() -> None:
    inner, outer = interface("172.17.0.1/16"), interface("10.5.0.1/24")
    one = host_facts("h1", interfaces={"docker0": inner, "vpn0": outer, "eth0": interface("10.0.0.1/24")})
    assert one.addresses()[-1] == "172.17.0.1"
    assert address_for_others(one, [one, host_facts("h2"), host_facts("h3")]) == "10.0.0.1"
    assert address_for_others(host_facts("h9", interfaces={}), [one]) == "h9"


@pytest.mark.parametrize(
    ("value", "accused"),
    [("^docker0", True), ("^docker0,lo", False), ("^eth0,lo", False), ("=eth0", False), ("^=eth0", True)],
)
def test_exclusions_that_leave_loopback(value: str, accused: bool) -> None:
    told = [host_facts(name, {"NCCL_SOCKET_IFNAME": value}) for name in ("h1", "h2")]
    loopback = [one for one in said(named_interfaces, *told) if "loopback" in sentence_of(one.fact)]
    assert [one.accused for one in loopback] == ([("h1",), ("h2",)] if accused else [])


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        ("h1:2222", ""),
        ("[fd77::a]:2222", ""),
        ("http://h1:2222", "URL"),
        ("h1", "host:port"),
        ("h1:0", "port"),
        ("h1:70000", "port"),
    ],
)
def test_endpoints_in_tf_config(member: str, problem: str) -> None:
    read = read_cluster(json.dumps({"cluster": {"worker": [member]}, "task": {"type": "worker", "index": 0}}))
    assert isinstance(read, str) == bool(problem)
    assert problem in str(read)


def test_a_cluster_with_places_left_out() -> None:
    read = read_cluster('{"cluster": {"worker": {"1": "h1:1", "3": "h3:1"}}, "task": {"type": "worker", "index": "3"}}')
    assert isinstance(read, Cluster)
    assert (read.own.place, read.own.host, read.own.port) == ("worker 3", "h3", 1)
    assert "JSON" in str(read_cluster("{'cluster': {}}"))
