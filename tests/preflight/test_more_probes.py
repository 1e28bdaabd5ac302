"""Probes of settings that differ, of what hides a framework, of hosts that do not reach themselves, of slow name servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.model import Finding
from phalanx.preflight.agent import loopback as agent_loopback
from phalanx.preflight.agent.collect import Setting
from phalanx.preflight.agent.shadows import shadows as find_shadows
from phalanx.preflight.check import judge_facts
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.findings import findings_of
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.launch_line import read_launch_line
from phalanx.preflight.lint import stray_characters
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.probes import advertised, limits, loopback, settings, shadows, slow_names
from tests.preflight.made import host_facts, interface, summary_of


def judged(module: object, *hosts: HostFacts) -> list[Finding]:
    found = [one for one in module.examine(hosts, CheckOptions()) if isinstance(one, CheckFact)]  # type: ignore[attr-defined]
    for one in found:
        summary_of(one)
    return findings_of(found, {host.label: host for host in hosts})


@pytest.mark.parametrize(
    ("name", "cause", "severity"),
    [
        ("NCCL_ALGO", "setting-differs-hang", "error"),
        ("OMP_NUM_THREADS", "setting-differs-slow", "warning"),
        ("NVIDIA_TF32_OVERRIDE", "setting-differs-numbers", "warning"),
    ],
)
def test_a_setting_that_differs_says_how_it_harms(name: str, cause: str, severity: str) -> None:
    hosts = [host_facts(f"h{number}", {name: "1" if number == 2 else "0"}) for number in range(3)]
    (finding,) = judged(settings, *hosts)
    assert (finding.cause, finding.severity, finding.culprit_hosts) == (cause, severity, ("h2",))
    assert f"`export {name}=0` on h2" in finding.fixes[0].do
    assert judged(settings, *hosts[:2]) == []


def test_of_two_settings_nobody_is_accused() -> None:
    (finding,) = judged(settings, host_facts("h0", {"NCCL_PROTO": "LL"}), host_facts("h1", {"NCCL_PROTO": "Simple"}))
    assert finding.culprit_hosts == ()


def test_a_host_that_does_not_reach_itself() -> None:
    bad = host_facts("h1", loopback={"127.0.0.1": "timed out", "10.0.0.1": "ok"})
    (finding,) = judged(loopback, host_facts("h0", loopback={"127.0.0.1": "ok"}), bad)
    assert (finding.cause, finding.culprit_hosts) == ("loopback-filtered", ("h1",))


def test_this_machine_reaches_itself() -> None:
    found = agent_loopback.loopback(Setting({}))
    assert found["127.0.0.1"] == "ok"
    assert set(found.values()) == {"ok"}


def test_a_file_that_hides_a_framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    setting = Setting({"environment": {"PYTHONPATH": str(tmp_path / "folder")}})
    assert find_shadows(setting) == {}
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "numpy.py").touch()
    found = find_shadows(setting)
    assert found["numpy"]["file"] == str(tmp_path / "folder" / "numpy.py")
    assert Path(found["numpy"]["installed"]).is_dir()
    (finding,) = judged(shadows, host_facts("h1", shadows=found))
    assert (finding.cause, finding.symptom) == ("framework-shadowed", "build.import-error")


def test_an_invisible_character() -> None:
    (finding,) = judged(stray_characters, host_facts("h1", {"MASTER_ADDR": "10.0.0.1\u200b"}))
    assert "U+200B" in finding.summary
    assert "10.0.0.1" in finding.fixes[0].do


def test_a_limited_address_space() -> None:
    told = {"address": [4 << 30, 4 << 30], "shm": {"size": 8 << 30, "free": 8 << 30, "read_only": 0}}
    causes = [one.cause for one in judged(limits, host_facts("h1", limits=told))]
    assert "address-space-limit" in causes


def test_a_slow_name_server_is_named_as_what_it_is() -> None:
    told = {"addresses": ["10.0.0.1"], "bindable": ["10.0.0.1"], "error": "", "seconds": 3.1}
    slow = {"own": "h1", "asked": {"h1": told, "h0": told}, "servers": ["10.9.9.9"]}
    (finding,) = judged(slow_names, host_facts("h0"), host_facts("h1", names=slow))
    assert (finding.cause, finding.culprit_hosts) == ("name-server-slow", ("h1",))
    assert "10.9.9.9" in finding.summary


def test_bridges_that_mpi_would_use() -> None:
    hosts = []
    for number in range(2):
        inside = {
            "eth0": interface(f"10.0.0.{number + 1}/24"),
            "virbr0": interface(f"192.168.{number + 120}.1/24"),
        }
        hosts.append(host_facts(f"h{number}", {"OMPI_COMM_WORLD_SIZE": "2"}, inside))
    causes = [one.cause for one in judged(advertised, *hosts)]
    assert "mpi-uses-a-bridge" in causes


def test_torchrun_commands_that_name_each_node_as_the_master_are_one_finding() -> None:
    """What to change is the option of the command, not a variable that the option overrides."""
    lines = [
        f"torchrun --nnodes 3 --node-rank {n} --master-addr h{n} --master-port {29500 + (n == 2)} t.py"
        for n in range(3)
    ]
    launches = {f"h{n}": read_launch_line(line.split(), own=True) for n, line in enumerate(lines)}
    hosts = [host_facts(name, dict(line.variables)) for name, line in launches.items()]
    found, _ = judge_facts(hosts, CheckOptions(launches=launches))
    told = {one.fact.id: one for one in found}
    assert set(told) == {"check.master-addr-differs", "check.master-port-differs"}
    assert told["check.master-addr-differs"].accused == ()
    assert told["check.master-port-differs"].accused == ("h2",)
    finding = findings_of([told["check.master-port-differs"]], {one.label: one for one in hosts})[0]
    assert finding.fixes[0].do == "Set --master-port=29500 on h2, as on the others."
