"""The agent: it runs on old interpreters, from memory, and answers whatever it is asked."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.preflight.agent import firewall, names, ports, serve
from phalanx.preflight.packing import BOOTSTRAP, packed_agent, shell_command
from phalanx.preflight.targets import AgentError, AgentTimeoutError, this_machine

AGENT = Path(serve.__file__).parent


@pytest.mark.parametrize("path", sorted(AGENT.glob("*.py")), ids=lambda path: path.stem)
def test_it_is_written_for_python_3_8_and_needs_nothing_but_its_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert (node.module or "").split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in ("removeprefix", "removesuffix"), "Python 3.9"


def converse(*requests: dict[str, object], line: str | None = None) -> list[dict[str, object]]:
    """What an agent of its own process answers."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(packed_agent() + "\n" + (line or ""))
    process.stdin.write("".join(json.dumps(request) + "\n" for request in requests))
    process.stdin.flush()
    found = []
    ends = 0
    while ends < len(requests):
        message = json.loads(process.stdout.readline())
        found.append(message)
        ends += bool(message.get("end"))
    process.stdin.close()
    assert process.wait(20) == 0
    return found


def test_it_runs_from_memory_and_ends_with_its_input() -> None:
    said = converse({"id": 1, "do": "clock"}, {"id": 2, "do": "nonsense"}, line="this is not JSON\n")
    assert said[0]["hello"] == 1
    by_id = {message["id"]: message for message in said[1:] if message.get("end")}
    assert "error" not in by_id[1]
    assert "unknown verb nonsense" in str(by_id[2]["error"])


def test_the_command_for_a_remote_shell_finds_an_interpreter() -> None:
    done = subprocess.run(
        ["sh", "-c", shell_command()],
        input=packed_agent() + "\n" + '{"id": 1, "do": "clock"}\n',
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert '"hello":1' in done.stdout, done.stderr


def test_all_sections_are_there() -> None:
    facts = this_machine().ask("facts", {}, 20)[0]
    assert facts["missing"] == {}
    assert facts["interfaces"]["lo"]["loopback"] is True
    assert any(address.startswith("127.0.0.1/") for address in facts["interfaces"]["lo"]["addresses"])
    assert facts["who"]["hostname"] == facts["names"]["own"]
    assert facts["limits"]["nofile"][0] > 0
    assert facts["versions"]["packages"]["numpy"]


def test_values_of_foreign_variables_and_secrets_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_DIARY", "private")
    monkeypatch.setenv("NCCL_SECRET_TOKEN", "hush")
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    text = json.dumps(this_machine().ask("facts", {"sections": ["environment"]}, 20)[0])
    assert "private" not in text
    assert "hush" not in text
    assert "MY_DIARY" in text
    assert '"NCCL_DEBUG": "INFO"' in text


def test_a_listening_port_has_an_owner() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        rows = ports.ports(_Setting({"ports": [port]}))["listening"]
    mine = next(row for row in rows if row["port"] == port)
    assert mine["address"] == "127.0.0.1"
    assert mine["pid"] > 0
    assert "python" in mine["command"]


class _Setting:
    def __init__(self, args: dict[str, object]) -> None:
        self.args = args
        self.environment: dict[str, str] = {}

    def listed(self, name: str) -> list[object]:
        return list(self.args.get(name, []))  # type: ignore[call-overload]


def test_names_resolve_with_what_can_be_bound() -> None:
    found = names.look_up(["localhost", "no-such-host.invalid", "198.51.100.7"])
    assert "127.0.0.1" in found["localhost"]["bindable"]
    assert found["no-such-host.invalid"]["addresses"] == []
    assert found["no-such-host.invalid"]["error"]
    assert found["198.51.100.7"]["bindable"] == []


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [("node0:2222", "node0"), ("node0", "node0"), ("[fd00::1]:2222", "fd00::1"), ("fd00::1", "fd00::1")],
)
def test_hosts_of_endpoints(endpoint: str, host: str) -> None:
    assert names.host_of(endpoint) == host


def test_rules_that_close_are_read_from_both_kinds_of_firewall() -> None:
    nft = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t\ttcp dport 22 accept\n\t\ttcp dport 29500 reject\n\t}\n}\n"
    assert [row["rule"] for row in firewall.closing_lines(nft)] == [
        "type filter hook input priority filter; policy drop;",
        "tcp dport 29500 reject",
    ]
    save = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\n-A INPUT -p tcp --dport 29500 -j DROP\nCOMMIT\n"
    assert [row["chain"] for row in firewall.closing_lines(save)] == ["INPUT", "INPUT"]


def test_a_request_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(AgentTimeoutError):
        this_machine().ask("facts", {}, 0.0001)
    with pytest.raises(AgentError, match="unknown verb"):
        this_machine().ask("nonsense", {}, 5)
