"""Whatever a command writes is its owner's alone under an open umask: reports, bundles, pages, caches."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

_LOG = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "t.py", line 3, in <module>
[rank0]: ValueError: bad batch
"""
_JOB = "import os, sys\nprint('step 1', flush=True)\nsys.exit(os.environ['RANK'] == '1')\n"


def open_to_others(folder: Path) -> list[str]:
    found = [path for path in folder.rglob("*") if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077]
    return sorted(str(path.relative_to(folder)) for path in found)


def phalanx(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home" / ".cache")}
    variables |= {"TMPDIR": str(folder / "tmp"), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    command = [sys.executable, "-m", "phalanx", *words]
    return subprocess.run(
        command, cwd=folder, env=variables, umask=0, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "a.log", "-o", "r.txt"),
        ("diagnose", "a.log", "-f", "json", "-o", "r.json"),
        ("diagnose", "a.log", "-f", "html", "-o", "r.html"),
        ("check", "t.py", "-f", "sarif", "-o", "l.sarif"),
        ("check", "t.py", "-o", "l.txt"),
        ("check", "-f", "html", "-o", "c.html"),
        ("check", "-o", "c.txt"),
        ("run", "-n", "2", "t.py"),
    ],
    ids=" ".join,
)
def test_what_is_written_is_private(tmp_path: Path, words: tuple[str, ...]) -> None:
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    for name, text in (("a.log", _LOG), ("t.py", _JOB)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    done = phalanx(tmp_path, *words)
    assert done.returncode in (0, 1), done.stderr
    assert "-o" not in words or (tmp_path / words[-1]).is_file()
    assert not open_to_others(tmp_path)


def test_a_file_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.log").write_text(_LOG)
    (tmp_path / "r.html").touch()
    (tmp_path / "r.html").chmod(0o644)
    phalanx(tmp_path, "diagnose", "a.log", "-f", "html", "-o", "r.html")
    assert stat.S_IMODE((tmp_path / "r.html").stat().st_mode) == 0o644
