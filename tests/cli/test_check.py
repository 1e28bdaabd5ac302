"""The command line of `phalanx check`: forms, exit codes, bad input, the script of fixes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from phalanx.cli import app
from phalanx.preflight.agent import ports

RUNNER = CliRunner()


def check(*arguments: str, **variables: str) -> Result:
    return RUNNER.invoke(app, ["check", *arguments], env=variables)


def test_a_healthy_machine_gives_no_finding() -> None:
    result = check()
    assert result.exit_code == 0, result.output
    assert "Nothing wrong found on this machine" in result.output
    assert re.search(
        r"checked: \d+ comparisons of [\d,]+ facts, \d+ variables? against [\d,]+ known names", result.output
    )
    assert "not checked: other hosts and the network between them; needs --hosts" in result.output


@pytest.mark.parametrize(
    ("given", "words"),
    [("slurm:x", "give the number of a job"), ("slurm:99999999", "scontrol")],
)
def test_hosts_of_a_scheduler_that_is_not_there_are_an_error(given: str, words: str) -> None:
    result = check("--hosts", given)
    assert result.exit_code == 2
    assert words in result.output


def test_what_may_work_by_luck_is_a_warning_with_a_status_of_its_own() -> None:
    result = check("--env", "NCCL_SOCKET_IFNAM=eth0")
    assert result.exit_code == 3
    assert "It may work, but slowly or by luck" in result.output
    assert "1 warning; this machine" in result.output
    assert json.loads(check("--env", "NCCL_SOCKET_IFNAM=eth0", "--format", "json").output)["verdict"]["severity"] == (
        "warning"
    )
    assert check("--env", "NCCL_SOCKET_IFNAM=eth0", "--env", "NCCL_IB_DISABLE=true").exit_code == 1


def test_json_is_the_contract() -> None:
    result = check("--format", "json", "--env", "NCCL_IB_DISABLE=true")
    report = json.loads(result.output)
    assert result.exit_code == 1
    assert report["schema"] == "phalanx.report/1"
    assert report["verdict"] == report["findings"][0]
    assert report["verdict"]["cause"] == "value-misparsed"
    assert report["verdict"]["symptom"] == "comm.unexpected-protocol"
    assert report["verdict"]["fixes"][0]["shell"] == "export NCCL_IB_DISABLE=1"
    assert report["verdict"]["culprit_hosts"] == [report["world"]["hosts"][0]["name"]]


@pytest.mark.parametrize("form", ["sarif", "html"])
def test_other_forms(form: str, tmp_path: Path) -> None:
    file = tmp_path / "report"
    result = check("--format", form, "--output", str(file), "--env", "GLOO_SOCKET_IFNAME=^docker0")
    assert result.exit_code == 1
    text = file.read_text()
    assert "COM244" in text
    if form == "sarif":
        run = json.loads(text)["runs"][0]
        jsonschema.validate(run["results"][0]["ruleId"], {"const": "COM244"})
        assert run["tool"]["driver"]["rules"][0]["id"] == "COM244"


def test_text_says_what_to_change_and_all_of_it_on_request() -> None:
    short = check("--env", "GLOO_SOCKET_IFNAME=eth77").output
    assert "there is no such interface on" in short
    assert "fix " in short
    assert "phalanx rules explain COM223" in short
    assert "why" in check("--all", "--env", "GLOO_SOCKET_IFNAME=eth77").output


def test_the_script_of_fixes_sets_variables_and_is_safe_to_source(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    given = f"NCCL_SOCKET_IFNAM=x; touch {harm} #$(touch {harm})"
    result = check("--fix-script", "--env", given, "--env", "NCCL_P2P_DISABLE=on")
    script = tmp_path / "fixes.sh"
    script.write_text(result.output)
    done = subprocess.run(
        ["sh", "-c", f". {script}; echo $NCCL_P2P_DISABLE; echo $NCCL_SOCKET_IFNAME"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.splitlines() == ["1", given.partition("=")[2]]
    assert not harm.exists()


def test_the_launch_command_is_read_not_run(tmp_path: Path) -> None:
    words = ["torchrun", "--nnodes=2", "--node_rank", "0", "--rdzv-endpoint", "no-such-host.invalid:29400", "none.py"]
    result = check("--format", "json", "--", *words)
    causes = [finding["cause"] for finding in json.loads(result.output)["findings"]]
    assert "master-addr-unresolvable" in causes
    assert "code-missing" in causes


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--env", "NONSENSE"], "NAME=VALUE"),
        (["--hosts", ","], "give names"),
        (["--hosts", ""], "give names"),
        (["--hosts", "a,a"], "twice"),
        (["--each", "nsenter"], "--hosts"),
        (["--hosts", "a", "--ray", "auto"], "exclude each other"),
        (["--hosts", "a", "--read", "x"], "exclude each other"),
        (["--for", "glo"], "did you mean gloo?"),
        (["--for", ","], "give some of"),
        (["--hosts", "a,b,c", "--each", "x", "--each", "y"], "give it once"),
        (["--read", "/no/such/file"], "No such file"),
        (["--read", "/dev/null"], "no facts"),
        (["--meet", "/tmp"], "--meet"),
        (["--output", "/no/such/folder/x", "--format", "json"], "cannot write"),
    ],
)
def test_bad_input_is_told_clearly(arguments: list[str], word: str) -> None:
    result = check(*arguments)
    assert result.exit_code == 2
    assert word in result.output
    assert "Traceback" not in result.output


def test_a_command_that_brings_no_agent(tmp_path: Path) -> None:
    result = check("--each", "false", "--each", "no-such-program-here", "--hosts", "h0,h1", "--format", "json")
    report = json.loads(result.output)
    assert result.exit_code == 1
    assert {finding["cause"] for finding in report["findings"]} == {"agent-not-started"}
    assert [finding["culprit_hosts"] for finding in report["findings"]] == [["h0"], ["h1"]]


def test_an_incomplete_check_is_no_all_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_setting: object) -> dict[str, object]:
        raise OSError("cut off")

    monkeypatch.setitem(ports.FACTS, "ports", broken)
    result = check()
    assert result.exit_code == 2
    assert "The check is incomplete" in result.output
    assert "not checked: ports on" in result.output
    assert "Nothing wrong found" not in result.output


def test_run_checks_first_when_asked(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("open('started', 'w').close()\n")
    arguments = ["run", "-n", "1", "--check", "--framework", "none", "--bundle", str(tmp_path / "bundle"), str(script)]
    result = RUNNER.invoke(app, [*arguments[:3], "--env", "NCCL_IB_DISABLE=true", *arguments[3:]])
    assert result.exit_code == 2
    assert "not started" in result.output
    assert "NCCL_IB_DISABLE" in result.output
    script.write_text("import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n")
    result = RUNNER.invoke(app, [*arguments[:-2], str(tmp_path / "second"), arguments[-1]])
    assert result.exit_code == 2
    assert "barrier" in result.output, "the script is read, too"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("step 1 loss 0.5\n")
    result = RUNNER.invoke(app, ["check", str(log)])
    assert result.exit_code == 2
    assert "neither a training script" in result.output
    assert "Nothing wrong" not in result.output
