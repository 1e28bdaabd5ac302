"""The runner, on real tiny processes: layouts, time limits, cures, and nothing left running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from phalanx.zoo.fault import FaultError
from phalanx.zoo.job import Outcome, marked_processes
from phalanx.zoo.reading import load_fault
from phalanx.zoo.runner import PATIENCE, judge_ending, run_fault

TOML = """
title = "t"
framework = "torch"
healthy = false
symptom = "fail.other"
cause = "user-exception"
culprit_ranks = []
distributed_specific = false
stage = "training & evaluation"
accepted_fixes = ["other"]
split = "train"
[run]
launcher = "python"
command = {command}
world_size = {world_size}
timeout_s = {timeout}
layout = "{layout}"
{more}
"""


def make(
    folder: Path,
    script: str,
    *,
    layout: str = "merged",
    world_size: int = 1,
    timeout: int = 20,
    more: str = "",
    command: list[str] | None = None,
) -> Path:
    folder.mkdir()
    words = json.dumps(command or [sys.executable, "train.py"])
    text = TOML.format(command=words, layout=layout, world_size=world_size, timeout=timeout, more=more)
    (folder / "fault.toml").write_text(text, encoding="utf-8")
    (folder / "train.py").write_text(script, encoding="utf-8")
    return folder


def run(folder: Path, out: Path, *, cured: bool = False, grace_s: float = 0.5) -> Outcome:
    return run_fault(load_fault(folder), None, out, cured=cured, grace_s=grace_s)


def test_merged_keeps_both_streams_in_one_file(tmp_path: Path) -> None:
    script = (
        "import sys\nprint('step 1', flush=True)\nprint('warning', file=sys.stderr, flush=True)\nraise ValueError('x')"
    )
    outcome = run(make(tmp_path / "f", script), tmp_path / "out")
    assert outcome.exit_codes == {"launcher": 1}
    assert not outcome.timed_out
    assert not outcome.clean
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["job.log"]
    log = (tmp_path / "out" / "job.log").read_text(encoding="utf-8")
    assert log.startswith("step 1\nwarning\nTraceback")
    assert 'File "/home/user/job/train.py", line 4' in log


def test_per_rank_sets_the_environment_and_keeps_statuses(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "e = os.environ\n"
        "print(e['RANK'], e['WORLD_SIZE'], e['LOCAL_RANK'], e['MASTER_ADDR'], e.get('X', '-'), flush=True)\n"
        "print(e['MASTER_PORT'])\n"
        "if e['RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
        "if e['RANK'] == '2': raise SystemExit(3)\n"
    )
    more = 'env = { X = "all" }\nrank_env = { 2 = { X = "only-{rank}" } }'
    folder = make(tmp_path / "f", script, layout="per-rank", world_size=3, more=more)
    outcome = run(folder, tmp_path / "out")
    assert outcome.exit_codes == {"0": 0, "1": -9, "2": 3}
    assert json.loads((tmp_path / "out" / "exit_codes.json").read_text()) == {"0": 0, "1": -9, "2": 3}
    lines = [(tmp_path / "out" / f"rank{rank}.log").read_text().splitlines() for rank in range(3)]
    first = [line[0] for line in lines]
    assert first == ["0 3 0 127.0.0.1 all", "1 3 1 127.0.0.1 all", "2 3 2 127.0.0.1 only-2"]
    assert lines[0][1] == lines[2][1]


def test_only_the_named_ranks_start(tmp_path: Path) -> None:
    folder = make(tmp_path / "f", "print('up')", layout="per-rank", world_size=4, more="start = [0, 3]")
    outcome = run(folder, tmp_path / "out")
    assert sorted(outcome.exit_codes) == ["0", "3"]
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["exit_codes.json", "rank0.log", "rank3.log"]


def test_a_tree_of_logs_is_kept(tmp_path: Path) -> None:
    script = "import os\nos.makedirs('logs/0')\nopen('logs/0/stderr.log', 'w').write(os.getcwd())\nprint('launcher')"
    run(make(tmp_path / "f", script, layout="torchrun-logdir"), tmp_path / "out")
    assert (tmp_path / "out" / "logs" / "0" / "stderr.log").read_text() == "/home/user/job"
    assert (tmp_path / "out" / "job.log").read_text() == "launcher\n"


def test_a_hung_job_gets_sigterm_first(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        "def stop(*_): print('stopping', flush=True); sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "time.sleep(60)\n"
    )
    outcome = run(make(tmp_path / "f", script, timeout=1), tmp_path / "out", grace_s=5)
    assert outcome.timed_out
    assert outcome.exit_codes == {"launcher": 7}
    assert (tmp_path / "out" / "job.log").read_text() == "stopping\n"


def test_nothing_is_left_running(tmp_path: Path) -> None:
    # a worker in a session of its own, deaf to SIGTERM, and stopped: only the mark finds it
    worker = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print(os.environ['PHALANX_ZOO_RUN'], os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    )
    script = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {worker!r}], start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    outcome = run(make(tmp_path / "f", script, timeout=2), tmp_path / "out")
    assert outcome.timed_out
    assert outcome.exit_codes == {"launcher": -15}
    mark, pid = (tmp_path / "out" / "job.log").read_text().split()
    assert marked_processes(mark) == []
    assert not _alive(int(pid))


def test_a_frozen_rank_is_killed_and_its_status_kept(tmp_path: Path) -> None:
    script = "import os, signal\nif os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGSTOP)"
    folder = make(tmp_path / "f", script, layout="per-rank", world_size=2, timeout=1)
    outcome = run(folder, tmp_path / "out")
    assert outcome.timed_out
    assert outcome.exit_codes == {"0": 0, "1": -9}


def _alive(pid: int) -> bool:
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
            return False
        time.sleep(0.05)
    return True


def test_the_cure_may_be_a_script_or_a_change_of_the_run(tmp_path: Path) -> None:
    folder = make(tmp_path / "script", "raise SystemExit(1)")
    (folder / "cured.py").write_text("print('fine')", encoding="utf-8")
    assert not run(folder, tmp_path / "a").clean
    assert run(folder, tmp_path / "b", cured=True).clean
    script = "import os\nraise SystemExit('BAD' in os.environ)"
    changed = make(tmp_path / "run", script, more='env = { BAD = "1" }\n[cured]\nenv = {}')
    assert not run(changed, tmp_path / "c").clean
    assert run(changed, tmp_path / "d", cured=True).clean


def test_no_cure_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FaultError, match=r"neither cured\.py nor a \[cured\] table"):
        run(make(tmp_path / "f", ""), tmp_path / "out", cured=True)


def test_an_empty_value_takes_a_variable_away(tmp_path: Path) -> None:
    script = "import os\nprint(os.environ.get('OMP_NUM_THREADS'))"
    run(make(tmp_path / "with", script), tmp_path / "a")
    run(make(tmp_path / "without", script, more='env = { OMP_NUM_THREADS = "" }'), tmp_path / "b")
    assert (tmp_path / "a" / "job.log").read_text() == "1\n"
    assert (tmp_path / "b" / "job.log").read_text() == "None\n"


def test_ports_are_put_into_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; print(*sys.argv[1:])", "{port0}", "{port1}", "{port}"]
    run(make(tmp_path / "f", "", command=command, world_size=2), tmp_path / "out")
    ports = (tmp_path / "out" / "job.log").read_text().split()
    assert len(set(ports)) == 3
    assert all(port.isdigit() for port in ports)


def test_what_is_prepared_is_there_and_is_not_recorded(tmp_path: Path) -> None:
    make_file = [sys.executable, "-c", "print('downloading'); open('data.txt', 'w').write('42')"]
    folder = make(tmp_path / "f", "print(open('data.txt').read())", more=f"prepare = [{json.dumps(make_file)}]")
    assert run(folder, tmp_path / "out").clean
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["job.log"]
    assert (tmp_path / "out" / "job.log").read_text() == "42\n"


def test_a_preparation_that_fails_says_what_it_printed(tmp_path: Path) -> None:
    bad = [sys.executable, "-c", "raise SystemExit('no such package')"]
    folder = make(tmp_path / "f", "print('never')", more=f"prepare = [{json.dumps(bad)}]")
    with pytest.raises(FaultError, match="failed before the job began: no such package"):
        run(folder, tmp_path / "out")


def test_a_set_stop_ends_the_job_at_once(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    fault = load_fault(make(tmp_path / "f", "import time; time.sleep(300)", timeout=250))
    outcome = run_fault(fault, None, tmp_path / "out", grace_s=0.5, stop=stop)
    assert outcome.timed_out
    assert outcome.seconds < 60


@pytest.mark.parametrize(
    ("script", "more", "cured", "words"),
    [
        ("raise SystemExit(1)", "", False, ""),
        ("print('fine')", "", False, "must fail or hang"),
        ("print('lost 3 rows')", 'ends_well = true\nshows = "lost \\\\d+ rows"', False, ""),
        ("print('fine')", 'ends_well = true\nshows = "lost"', False, "the fault did not show"),
        ("print('lost 3 rows')", 'ends_well = true\nshows = "lost"\n[cured]\nenv = {}', True, "still shows 'lost'"),
        ("raise SystemExit(3)", "[cured]\nenv = {}", True, "it must end well, but ended with {'launcher': 3}"),
        ("print('fine')", "[cured]\nenv = {}", True, ""),
    ],
)
def test_a_fault_must_show_and_a_cure_must_not(tmp_path: Path, script: str, more: str, cured: bool, words: str) -> None:
    fault = load_fault(make(tmp_path / "f", script, more=more))
    outcome = run_fault(fault, None, tmp_path / "out", cured=cured, grace_s=0.5)
    ending = judge_ending(fault, outcome, tmp_path / "out", cured=cured)
    assert ending.good == (not words)
    assert words in ending.why


def test_what_shows_only_in_two_logs_together_is_shown(tmp_path: Path) -> None:
    shows = "shows = '(?s)(?=.*rank 0 norm (\\d))(?=.*rank 1 norm (?!\\1))'"
    fault = load_fault(make(tmp_path / "f", "print('done')", more=f"ends_well = true\n{shows}"))
    outcome = run_fault(fault, None, tmp_path / "out", grace_s=0.5)
    for norm, is_shown in ((8, False), (7, True)):
        for rank, number in enumerate((8, norm)):
            (tmp_path / "out" / f"rank{rank}.log").write_text(f"rank {rank} norm {number}\n")
        assert judge_ending(fault, outcome, tmp_path / "out", cured=False).good == is_shown


@pytest.mark.parametrize(
    ("script", "symptom", "is_good"),
    [
        ("import time; time.sleep(60)", "fail.other", False),
        ("import time; time.sleep(60)", "perf.hang", True),
        ("import time; time.sleep(60)", "perf.other", False),
        ("import time; print('step 1', flush=True); time.sleep(60)", "perf.other", True),
        ("import time; print('RuntimeError: lost', flush=True); print('Traceback (most recent call last):', flush=True); time.sleep(60)", "fail.other", True),
    ],
)  # fmt: skip
def test_a_job_that_was_cut_off_before_it_broke_has_shown_nothing(
    tmp_path: Path, script: str, symptom: str, is_good: bool
) -> None:
    fault = replace(load_fault(make(tmp_path / "f", script, timeout=3)), symptom=symptom)
    outcome = run_fault(fault, None, tmp_path / "out", grace_s=0.5)
    assert outcome.timed_out
    ending = judge_ending(fault, outcome, tmp_path / "out", cured=False)
    assert ending.good == is_good
    assert is_good or "nothing had broken when it was cut off" in ending.why


def test_a_late_start_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.zoo.job._USUAL_START_S", 0.5)
    script = "import time; time.sleep({}); print('step 1', flush=True); time.sleep(4 - {}); raise SystemExit(1)"
    late = run(make(tmp_path / "late", script.format(2.5, 2.5), timeout=3), tmp_path / "a")
    assert not late.timed_out  # 3 s and the 2 s by which it was late
    assert run(make(tmp_path / "prompt", script.format(0, 0), timeout=3), tmp_path / "b").timed_out


def test_jobs_that_end_by_themselves_get_more_time(tmp_path: Path) -> None:
    folder = make(tmp_path / "f", "import time; time.sleep(1.5)", timeout=1, more="[cured]\nenv = {}")
    assert run(folder, tmp_path / "a").timed_out
    assert PATIENCE > 1
    assert run(folder, tmp_path / "b", cured=True).clean


def test_what_pip_installs_does_not_change_the_environment(tmp_path: Path) -> None:
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", str(base)], check=True, timeout=200)
    wheel = "zoo_trial-1.0-py3-none-any.whl"
    package = make(tmp_path / "f", "", command=["pip", "install", "--no-index", f"./{wheel}"])
    text = (package / "fault.toml").read_text(encoding="utf-8").replace('launcher = "python"', 'launcher = "pip"')
    (package / "fault.toml").write_text(text.replace("timeout_s = 20", "timeout_s = 200"), encoding="utf-8")
    with zipfile.ZipFile(package / wheel, "w") as archive:
        archive.writestr("zoo_trial-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: zoo-trial\nVersion: 1.0\n")
        archive.writestr(
            "zoo_trial-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("zoo_trial-1.0.dist-info/RECORD", "")
    outcome = run_fault(load_fault(package), base, tmp_path / "out", grace_s=0.5)
    log = (tmp_path / "out" / "job.log").read_text(encoding="utf-8")
    assert outcome.clean, log
    assert "Successfully installed zoo-trial-1.0" in log
    assert not list(base.glob("lib/python3*/site-packages/zoo*"))


def test_it_is_noted_when_the_logs_first_tell_of_trouble(tmp_path: Path) -> None:
    script = "import time\nprint('step 1', flush=True)\ntime.sleep(1)\nraise ValueError('x')"
    outcome = run(make(tmp_path / "f", script), tmp_path / "out")
    assert outcome.spoke_s is not None
    assert 1.0 <= outcome.spoke_s <= outcome.seconds + 0.5
    assert outcome.first_s is not None
    assert outcome.first_s < outcome.spoke_s
    assert run(make(tmp_path / "g", "print('fine')"), tmp_path / "out").spoke_s is None


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    folder = make(tmp_path / "f", "", command=["no-such-launcher", "train.py"])
    with pytest.raises(FaultError, match="no-such-launcher: there is no such program"):
        run(folder, tmp_path / "out")


def test_the_folder_of_the_job_is_put_in(tmp_path: Path) -> None:
    script = "import os\nprint(os.path.samefile(os.environ['WHERE'], 'train.py'), os.environ['WHERE'])"
    run(make(tmp_path / "f", script, more='env = { WHERE = "{job}/train.py" }'), tmp_path / "out")
    assert (tmp_path / "out" / "job.log").read_text() == "True /home/user/job/train.py\n"
