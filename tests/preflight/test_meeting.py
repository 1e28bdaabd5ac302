"""Ranks under real launchers come together: by a folder, at MASTER_ADDR, and through what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import phalanx
from phalanx.lab import Bed
from phalanx.lab.fault import find_fault
from phalanx.preflight.meeting.printed import facts_in, facts_to_print
from phalanx.preflight.meeting.seat import seat_of
from phalanx.preflight.options import CheckOptions
from tests.lab.beds import needs_beds

_CHECK = [sys.executable, "-m", "phalanx.check"]


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ranks look for each other where they are started: those of two tests must not meet."""
    monkeypatch.chdir(tmp_path_factory.mktemp("meeting"))
    monkeypatch.setenv("PYTHONPATH", str(Path(phalanx.__file__).parents[1]))


def environment(**variables: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC"))
    }
    return {**kept, **variables}


def launch(ranks: list[dict[str, str]], *arguments: str) -> list[tuple[int, str]]:
    """So many ranks by hand, and how each ended."""
    command = [*_CHECK, "--format", "json", *arguments]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**one))
        for one in ranks
    ]
    outputs = [process.communicate(timeout=200) for process in processes]
    return [(process.returncode, out or error) for process, (out, error) in zip(processes, outputs, strict=True)]


def ranks(count: int, **variables: str) -> list[dict[str, str]]:
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29477", **variables}
    return [{"RANK": str(rank), **shared} for rank in range(count)]


def only_report(ended: list[tuple[int, str]]) -> dict[str, object]:
    """The report of the one rank that leads; the others are silent and end well."""
    spoken = [(code, out) for code, out in ended if out]
    assert len(spoken) == 1, ended
    assert all(code == 0 for code, out in ended if not out)
    report: dict[str, object] = json.loads(spoken[0][1])
    wrong = [one for one in report["findings"] if one["severity"] == "error"]  # type: ignore[attr-defined]
    assert spoken[0][0] == (1 if wrong else 3 if report["findings"] else 0)
    return report


def causes(report: dict[str, object]) -> list[str]:
    return [finding["cause"] for finding in report["findings"]]  # type: ignore[attr-defined]


def test_in_a_shared_folder(tmp_path: Path) -> None:
    report = only_report(launch(ranks(3), "--meet", str(tmp_path), "--wait", "90"))
    assert causes(report) == []
    assert [rank["rank"] for rank in report["world"]["ranks"]] == [0, 1, 2]  # type: ignore[index]
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_a_folder_of_a_check_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    seat = seat_of(ranks(2)[0])
    assert seat is not None
    stale = tmp_path / f"phalanx-check-{seat.job}"
    stale.mkdir()
    (stale / "leader").touch()
    os.utime(stale / "leader", (1, 1))
    assert causes(only_report(launch(ranks(2), "--meet", str(tmp_path), "--wait", "90"))) == []


def test_at_the_address_where_the_job_would_meet() -> None:
    assert causes(only_report(launch(ranks(3, LOCAL_WORLD_SIZE="1"), "--wait", "90"))) == []


def test_a_rank_that_does_not_come_is_named(tmp_path: Path) -> None:
    report = only_report(launch(ranks(3)[:2], "--meet", str(tmp_path), "--wait", "15"))
    assert causes(report)[0] == "rank-missing"
    assert "rank 2" in report["findings"][0]["summary"]  # type: ignore[index]


def test_a_world_size_that_differs(tmp_path: Path) -> None:
    started = ranks(3)
    started[1]["WORLD_SIZE"] = "2"
    report = only_report(launch(started, "--meet", str(tmp_path), "--wait", "15"))
    assert "world-size-differs" in causes(report)


def test_a_rank_that_cannot_reach_the_others_says_what_a_call_gives() -> None:
    lonely = ranks(2, MASTER_ADDR="127.0.0.1", MASTER_PORT="29487")[1]
    code, out = launch([lonely], "--wait", "2")[0]
    assert code == 1
    report = json.loads(out)
    assert "meeting-place-not-reached" in causes(report)
    finding = next(one for one in report["findings"] if one["cause"] == "meeting-place-not-reached")
    assert "127.0.0.1:29487" in finding["summary"]
    assert "`nc -vz 127.0.0.1 29487`" in finding["fixes"][0]["do"]


@needs_beds
@pytest.mark.parametrize("fault", ["master-port-wrong", "master-addr-unset", "firewall-drop"])
def test_the_meeting_does_not_depend_on_what_is_tested(fault: str) -> None:
    with Bed(3) as hosts:
        find_fault(fault)[0].apply(hosts)
        report = launch_in(hosts, "--wait", "60")
    assert causes(report)[0] == find_fault(fault)[0].expected.cause
    assert len(report["world"]["ranks"]) == 3  # type: ignore[arg-type]


def test_a_missing_rank_is_not_waited_for_longer_than_needed(tmp_path: Path) -> None:
    began = time.monotonic()
    report = only_report(launch(ranks(3)[:2], "--meet", str(tmp_path), "--wait", "120"))
    assert time.monotonic() - began < 100
    assert causes(report)[0] == "rank-missing"


def test_without_a_way_to_the_others_it_says_what_to_give(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(phalanx.__file__).parents[1]))
    lonely = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
    code, said = launch([lonely], "--wait", "2")[0]
    assert code == 1
    assert causes(json.loads(said))[0] == "rank-did-not-come-to-the-check"
    assert "--meet" in said
    code, said = launch([lonely], "--meet", "/proc/nowhere")[0]
    assert code == 2
    assert "MASTER_ADDR" in said
    assert "Traceback" not in said


@pytest.mark.job
def test_under_torchrun() -> None:
    pytest.importorskip("torch", reason="pip install torch")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "phalanx.check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment(), check=False)
    assert "Nothing wrong found on 1 host, 2 ranks" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_through_what_is_printed(tmp_path: Path) -> None:
    """Ranks that share no folder and are given different places to meet: only their output joins them."""
    started = []
    for number, one in enumerate(ranks(2)):
        (folder := tmp_path / str(number)).mkdir()
        own = environment(**{**one, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29611 + 100 * number)})
        command = [*_CHECK, "--print", "--no-link", "--wait", "3"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own, cwd=folder))
    printed = []
    for number, process in enumerate(started):
        out, _ = process.communicate(timeout=100)
        assert process.returncode == 0
        printed += [f"[1,{number}]<stdout>: {line}" for line in out.splitlines()]
    text = "\n".join([*printed[::2], "noise", *printed[1::2]])
    done = judge_printed(text)
    report = json.loads(done.stdout)
    assert [rank["rank"] for rank in report["world"]["ranks"]] == [0, 1]
    assert "master-port-differs" in {finding["cause"] for finding in report["findings"]}
    assert "rank-did-not-come-to-the-check" not in {finding["cause"] for finding in report["findings"]}
    assert any("network" in item["what"] for item in report["not_checked"])
    assert done.returncode == 1


def judge_printed(text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phalanx", "check", "--read", "-", "--format", "json"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=100, env=environment(), check=False
    )


def test_a_rank_whose_lines_are_cut_off_is_no_all_clear() -> None:
    lines = facts_to_print(CheckOptions())
    done = judge_printed("\n".join([*lines, *facts_to_print(CheckOptions())[:-1]]))
    assert done.returncode in (1, 2)
    assert any("cut off" in item["needs"] for item in json.loads(done.stdout)["not_checked"])


def test_facts_survive_the_way_and_cut_off_ones_are_counted() -> None:
    lines = facts_to_print(CheckOptions())
    assert len(lines) > 1
    found, broken = facts_in(lines)
    assert (len(found), broken) == (1, 0)
    assert found[0]["who"]["hostname"]
    assert facts_in(lines[:-1]) == ([], 1)
    assert facts_in([lines[0].replace(" 0/", " 0/9")]) == ([], 1)


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, None),
        ({"RANK": "0", "WORLD_SIZE": "4"}, (0, 4)),
        ({"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "a"}, (1, 4)),
        ({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "a"}, None),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, (3, 4)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, (1, 2)),
        ({"RANK": "x", "WORLD_SIZE": "4", "MASTER_ADDR": "a"}, None),
        ({"PET_NODE_RANK": "1", "PET_NNODES": "2"}, (1, 2)),
        ({"PET_RDZV_ENDPOINT": "a:29400", "PET_NNODES": "2"}, (0, 2)),
        ({"PET_RDZV_ENDPOINT": "a:29400", "PET_NNODES": "1"}, None),
    ],
)
def test_a_place_among_others(variables: dict[str, str], place: tuple[int, int] | None) -> None:
    seat = seat_of(variables)
    assert (None if seat is None else (seat.rank, seat.size)) == place


def launch_in(hosts: Bed, *arguments: str) -> dict[str, object]:
    """The check on every host in place of the script, as a launcher would start it."""
    processes = []
    for host in hosts:
        command = ["env", f"PYTHONPATH={Path(phalanx.__file__).parents[1]}", *_CHECK, "--format", "json", *arguments]
        processes.append(
            subprocess.Popen([*host.prefix, *command], stdout=subprocess.PIPE, text=True, env=environment())
        )
    outputs = [process.communicate(timeout=200)[0] for process in processes]
    return only_report([(process.returncode, out) for process, out in zip(processes, outputs, strict=True)])


@needs_beds
def test_across_hosts_at_the_masters_address() -> None:
    with Bed(2) as hosts:
        report = launch_in(hosts, "--no-network", "--wait", "90")
    assert causes(report) == []
    assert [host["name"] for host in report["world"]["hosts"]] == ["h0", "h1"]  # type: ignore[index]


@needs_beds
@pytest.mark.parametrize("count", [2, 3])
def test_that_large_packets_vanish_does_not_hinder_the_meeting(count: int) -> None:
    with Bed(count) as hosts:
        find_fault("mtu-tunnel")[0].apply(hosts)
        report = launch_in(hosts, "--wait", "60")
    assert causes(report)[0] == "mtu-black-hole"
    assert len(report["world"]["ranks"]) == count  # type: ignore[index]
