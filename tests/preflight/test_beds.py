"""Faults on real hosts (network namespaces), found before a launch; and healthy hosts, loaded ones too, that give no finding."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from phalanx.lab import Bed
from phalanx.lab.host import Host
from phalanx.model import Finding, Report
from phalanx.preflight.check import examine
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.targets import by_command, start_all
from tests.lab.beds import each, needs_beds

pytestmark = needs_beds
_FACTS_ONLY = CheckOptions(network=False)


def look(templates: Sequence[str], options: CheckOptions = _FACTS_ONLY) -> Report:
    targets, failures = start_all([partial(by_command, "", one, sys.executable, 30.0) for one in templates])
    try:
        return examine(targets, options, failures)
    finally:
        for target in targets:
            target.close()


def told(hosts: Sequence[Host], changes: dict[int, dict[str, str]] | None = None, **shared: str) -> list[str]:
    """Templates with the variables of a job of one rank a host, changed for some."""
    found = []
    for number, host in enumerate(hosts):
        variables = {"RANK": str(number), "WORLD_SIZE": str(len(hosts)), "MASTER_ADDR": "h0", "MASTER_PORT": "29500"}
        variables |= shared | (changes or {}).get(number, {})
        found.append(each(host, **{name: value for name, value in variables.items() if value != "-"}))
    return found


def only(report: Report) -> Finding:
    assert len(report.findings) == 1, [finding.summary for finding in report.findings]
    return report.findings[0]


@pytest.fixture(scope="module")
def three() -> Iterator[list[Host]]:
    with Bed(3) as bed:
        yield bed.hosts


def test_healthy_hosts_give_no_finding(three: list[Host]) -> None:
    for templates in (told(three), [each(host) for host in three], told(three, GLOO_SOCKET_IFNAME="eth0")):
        report = look(templates)
        assert report.findings == ()
        assert [host.name for host in report.world.hosts] == ["h0", "h1", "h2"]


def test_loaded_hosts_give_no_finding(three: list[Host]) -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        assert look(told(three)).findings == ()
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("shared", "changes", "cause", "hosts"),
    [
        ({"MASTER_ADDR": "localhost"}, {}, "master-addr-loopback", ["h0", "h1", "h2"]),
        ({"MASTER_ADDR": "h1"}, {}, "master-addr-wrong-host", ["h0", "h1", "h2"]),
        ({"MASTER_ADDR": "10.77.0.99"}, {}, "master-addr-nobody", ["h0", "h1", "h2"]),
        ({"MASTER_ADDR": "hx"}, {}, "master-addr-unresolvable", ["h0", "h1", "h2"]),
        ({}, {1: {"MASTER_ADDR": "-"}}, "master-addr-unset", ["h1"]),
        ({}, {2: {"MASTER_ADDR": "h1"}}, "master-addr-differs", ["h2"]),
        ({}, {2: {"MASTER_PORT": "29501"}}, "master-port-differs", ["h2"]),
        ({}, {2: {"MASTER_PORT": "-"}}, "master-port-unset", ["h2"]),
        ({"MASTER_PORT": "295OO"}, {}, "master-port-invalid", ["h0", "h1", "h2"]),
        ({}, {2: {"RANK": "1"}}, "rank-duplicate", ["h1", "h2"]),
        ({}, {2: {"RANK": "3"}}, "rank-out-of-range", ["h2"]),
        ({"WORLD_SIZE": "4"}, {}, "rank-missing", []),
        ({}, {0: {"WORLD_SIZE": "4"}}, "world-size-differs", ["h0"]),
        ({}, {1: {"RANK": "one"}}, "rank-not-a-number", ["h1"]),
        ({}, {1: {"WORLD_SIZE": "-"}}, "rank-variable-unset", ["h1"]),
        ({}, {2: {"RANK": "-"}}, "rank-variable-unset", ["h2"]),
        ({}, {1: {"GLOO_SOCKET_IFNAME": "eth1"}}, "interface-missing", ["h1"]),
        ({"NCCL_SOCKET_IFNAME": "ens"}, {}, "interface-missing", ["h0", "h1", "h2"]),
        ({"GLOO_SOCKET_IFNAME": "lo"}, {}, "interface-loopback", ["h0", "h1", "h2"]),
        ({}, {1: {"GLOO_SOCKET_IFNAM": "eth0"}}, "variable-misspelt", ["h1"]),
        ({"PET_NNODES": "3"}, {1: {"PET_NNODES": "2"}}, "nnodes-differs", ["h1"]),
        ({"PET_NNODES": "2"}, {}, "nnodes-not-the-hosts", []),
        ({"PET_RDZV_ID": "7"}, {1: {"PET_RDZV_ID": "8"}}, "rendezvous-id-differs", ["h1"]),
        ({"PET_RDZV_ENDPOINT": "h0:29400"}, {2: {"PET_RDZV_ENDPOINT": "h2:29400"}}, "rendezvous-place-differs", ["h2"]),
        ({"NODE_RANK": "0"}, {2: {"NODE_RANK": "1"}}, "node-rank-duplicate", ["h0", "h1"]),
    ],
)
def test_what_variables_get_wrong(
    three: list[Host], shared: dict[str, str], changes: dict[int, dict[str, str]], cause: str, hosts: list[str]
) -> None:
    finding = only(look(told(three, changes, **shared)))
    assert finding.cause == cause
    assert list(finding.culprit_hosts) == hosts
    assert finding.fixes
    assert all("unknown)" not in text for fix in finding.fixes for text in (fix.title, fix.do, fix.shell)), (
        finding.fixes
    )


def test_no_route_to_the_store(three: list[Host]) -> None:
    report = look(told(three, MASTER_ADDR="10.99.0.1"))
    assert [finding.cause for finding in report.findings] == ["master-addr-unroutable", "master-addr-nobody"]


def test_both_ends_and_the_value_to_give_are_named(three: list[Host]) -> None:
    finding = only(look(told(three, MASTER_ADDR="h1")))
    assert "h1" in finding.summary
    assert "h0" in finding.summary
    assert finding.fixes[0].shell == "export MASTER_ADDR=10.77.0.10"


def test_a_port_in_use_names_its_holder(three: list[Host]) -> None:
    server = subprocess.Popen([*three[0].prefix, sys.executable, "-m", "http.server", "29511"], stdout=-3, stderr=-3)
    try:
        until = time.monotonic() + 30
        while ":29511" not in three[0].run(["ss", "-ltn"]).stdout and time.monotonic() < until:
            time.sleep(0.1)
        finding = only(look(told(three, MASTER_PORT="29511")))
    finally:
        server.kill()
        server.wait()
    assert finding.cause == "master-port-in-use"
    assert finding.culprit_hosts == ("h0",)
    assert finding.culprit_ranks == (0,)
    assert "http.server 29511" in finding.summary


def tf_config(index: int, workers: str = "h0:2222,h1:2222,h2:2222", kind: str = "worker") -> str:
    config = {"cluster": {"worker": workers.split(",")}, "task": {"type": kind, "index": index}}
    return json.dumps(config)


@pytest.mark.parametrize(
    ("configs", "cause"),
    [
        ([tf_config(0), tf_config(1), tf_config(2)], None),
        ([tf_config(0), tf_config(1), tf_config(3)], "tf-config-unusable"),
        ([tf_config(0), tf_config(1), '{"cluster":'], "tf-config-unusable"),
        ([tf_config(0), tf_config(1), tf_config(1)], "tf-place-taken-twice"),
        ([tf_config(1), tf_config(0), tf_config(2)], "tf-address-not-own"),
        ([tf_config(0), tf_config(1), tf_config(2, "h0:2222,h1:2222,h2:2223")], "tf-clusters-differ"),
        ([tf_config(0, w := "h0:1,h1:1,h2:1,h3:1"), tf_config(1, w), tf_config(2, w)], "tf-task-missing"),
    ],
)
def test_tf_config(three: list[Host], configs: list[str], cause: str | None) -> None:
    report = look([each(host, TF_CONFIG=config) for host, config in zip(three, configs, strict=True)])
    assert (report.findings[0].cause if report.findings else None) == cause
    assert all(finding.symptom.startswith("comm.") for finding in report.findings)


def test_limits_and_small_shared_memory() -> None:
    with Bed(2) as bed:
        hosts = bed.hosts
        templates = told(hosts)
        templates[1] = f"prlimit --nofile=64 {templates[1]}"
        finding = only(look(templates))
        assert (finding.cause, finding.culprit_hosts) == ("open-files-limit", ("h1",))
        hosts[1].run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", "/dev/shm"])
        finding = only(look(told(hosts)))
        assert (finding.cause, finding.culprit_hosts) == ("shared-memory-small", ("h1",))


@pytest.mark.parametrize(
    ("hosts_file", "causes"),
    [
        ("127.0.0.1 localhost\n127.0.1.1 h0 h1\n", ["own-name-loopback"]),
        ("127.0.0.1 localhost\n10.77.0.10 h0\n", ["own-name-missing"]),
        ("127.0.0.1 localhost\n10.77.0.10 h0\n10.77.0.77 h1\n", ["own-name-stale"]),
        ("127.0.0.1 localhost\n10.77.0.10 h0\n10.77.0.11 h1\nfd00::9 h0\n", ["dead-address-beside-live"]),
    ],
)
def test_names(hosts_file: str, causes: list[str]) -> None:
    with Bed(2) as bed:
        hosts = bed.hosts
        for host in hosts:
            host.names(hosts_file)
        address = "h0" if "fd00" in hosts_file else "10.77.0.10"
        report = look(told(hosts, MASTER_ADDR=address))
        assert [finding.cause for finding in report.findings] == causes
        if causes[0].startswith("own-name"):
            named = look(told(hosts, MASTER_ADDR=address, GLOO_SOCKET_IFNAME="eth0"))
            assert "own-name-loopback" not in [finding.cause for finding in named.findings]


def test_addresses_that_two_hosts_have() -> None:
    with Bed(2) as bed:
        hosts = bed.hosts
        for host in hosts:
            bridge = "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up"
            host.run(["sh", "-c", bridge])
        assert look(told(hosts)).findings == ()  # every host with a container engine has it
        ranks = [{"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2"} for rank in range(2)]
        finding = only(look([each(host, **rank) for host, rank in zip(hosts, ranks, strict=True)]))
        assert finding.cause == "docker0-same-address"
        assert "btl_tcp_if_exclude" in finding.fixes[0].do
        excluded = {"OMPI_MCA_btl_tcp_if_exclude": "lo,docker0"}
        assert look([each(host, **rank, **excluded) for host, rank in zip(hosts, ranks, strict=True)]).findings == ()
        hosts[1].run(["ip", "addr", "add", "10.77.0.10/24", "dev", "eth0"])
        assert only(look(told(hosts))).cause == "duplicate-address"


@pytest.mark.skipif(shutil.which("nft") is None, reason="needs the Debian package nftables")
def test_a_firewall_rule_on_the_port_of_the_store() -> None:
    with Bed(2) as bed:
        hosts = bed.hosts
        chain = "add chain inet filter input { type filter hook input priority 0; policy accept; }"
        hosts[0].run(["nft", f"add table inet filter; {chain}; add rule inet filter input tcp dport 29000-29999 drop"])
        finding = only(look(told(hosts)))
        assert finding.cause == "firewall-rule-on-store-port"
        assert finding.culprit_hosts == ("h0",)


def test_code_and_paths_are_compared(tmp_path: Path) -> None:
    with Bed(2) as bed:
        hosts = bed.hosts
        script = tmp_path / "train.py"
        script.write_text("print(1)\n")
        other = tmp_path / "other.py"
        other.write_text("print(2)\n")
        options = CheckOptions(network=False, code=(str(script),), paths=(str(tmp_path), str(tmp_path / "none")))
        assert only(look(told(hosts), options)).cause == "path-missing"
        hosts[1].run(["mount", "--bind", str(other), str(script)])
        causes = {finding.cause for finding in look(told(hosts), options).findings}
        assert causes == {"path-missing", "code-differs"}


def test_pods_that_kubectl_does_not_know_are_one_finding_and_the_others_are_checked() -> None:
    """kubectl is played by a script with its command line and its words; the pods are hosts of a bed."""
    with Bed(4) as bed:
        kubectl = bed.folder / "kubectl"
        pods = "".join(f'  pod-{host.number}) exec {shlex.join(host.prefix)} "$@";;\n' for host in bed.hosts[:2])
        unknown = '  *) echo "Error from server (NotFound): pods \\"$pod\\" not found" >&2; exit 1;;\n'
        kubectl.write_text(f"#!/bin/sh\nshift 2; pod=$1; shift 2\ncase $pod in\n{pods}{unknown}esac\n")
        kubectl.chmod(0o755)
        names = [f"pod-{number}" for number in range(4)]
        template = f"{kubectl} exec -i {{host}} --"
        targets, failures = start_all([partial(by_command, name, template, sys.executable, 30.0) for name in names])
        report = examine(targets, _FACTS_ONLY, failures)
        finding = only(report)  # and not the ranks that are missing for it
        assert (finding.cause, finding.culprit_hosts) == ("agent-not-started", ("pod-2", "pod-3"))
        assert 'pods "{host}" not found' in finding.summary
        assert [host.name for host in report.world.hosts] == ["pod-0", "pod-1"]
        assert any(item.what == "ranks 2, 3" for item in report.not_checked)
        for target in targets:
            target.close()
