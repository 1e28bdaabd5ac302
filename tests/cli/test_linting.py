"""`phalanx check train.py` from the command line: exit codes, formats, settings, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BAD = """\
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.barrier()
dist.destroy_process_group()
"""


def check(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phalanx", "check", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_findings_give_1_and_the_json_contract(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD)
    done = check("train.py", "--format", "json", cwd=tmp_path)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["schema"] == "phalanx.report/1"
    finding = report["findings"][0]
    assert (finding["rule"], finding["symptom"], finding["cause"]) == (
        "LCM001",
        "perf.hang",
        "rank-conditional-collective",
    )
    assert finding["fixes"][0]["where"] == {"file": "train.py", "line": 5}


def test_clean_script_gives_0(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD.replace("if dist.get_rank() == 0:\n    ", ""))
    done = check("train.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 file, " in done.stdout


def test_text_shows_the_line_the_reason_and_the_fix(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD)
    shown = check("train.py", cwd=tmp_path).stdout
    assert "train.py:5: LCM001 `barrier` runs only on ranks where `dist.get_rank() == 0`" in shown
    assert ">     5 |     dist.barrier()" in shown
    assert "why: " in shown
    assert "fix: " in shown


def test_names_and_code_do_not_drive_the_terminal(tmp_path: Path) -> None:
    name = "a\x1b[31m\u202e.py"
    (tmp_path / name).write_text(BAD.replace("dist.barrier()", "dist.barrier()\t# \x1b]0;title\x07\x1b[32m"))
    shown = check(name, cwd=tmp_path).stdout
    assert "LCM001" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_github_annotations_and_sarif(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD)
    assert check("train.py", "-f", "github", cwd=tmp_path).stdout.startswith(
        "::error file=train.py,line=5,title=LCM001::"
    )
    sarif = json.loads(check("train.py", "-f", "sarif", cwd=tmp_path).stdout)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "LCM001"


def test_a_missing_file_and_a_syntax_error_give_2(tmp_path: Path) -> None:
    done = check("absent.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "phalanx: absent.py: there is no such file or folder\n")
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n")
    done = check("broken.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "not checked: broken.py: line 2 does not parse" in done.stdout


def test_comments_and_settings_silence_rules(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BAD.replace("    dist.barrier()", "    dist.barrier()  # phalanx: ignore[LCM001]"))
    assert check("train.py", cwd=tmp_path).returncode == 0
    script.write_text(BAD.replace("    dist.barrier()", "    dist.barrier()  # phalanx: ignore[LCM002]"))
    assert check("train.py", cwd=tmp_path).returncode == 1
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.phalanx.check]\nignore = ["LCM"]\n')
    assert check("train.py", cwd=tmp_path).returncode == 0
    settings.write_text('[tool.phalanx.check.per-file]\n"train.py" = ["LCM001"]\n')
    assert check("train.py", cwd=tmp_path).returncode == 0
    settings.write_text("[tool.phalanx.check]\nselct = []\n")
    done = check("train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no key 'selct'" in done.stderr
    settings.write_text("")
    assert check("--select", "LTF", "train.py", cwd=tmp_path).returncode == 0
    assert check("--ignore", "LCM001", "train.py", cwd=tmp_path).returncode == 0


def test_the_environment_check_reads_the_scripts_of_the_launch_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD)
    done = check("--no-network", "-f", "json", "--", "torchrun", "--standalone", "train.py", cwd=tmp_path)
    assert "LCM001" in [finding["rule"] for finding in json.loads(done.stdout)["findings"]]
