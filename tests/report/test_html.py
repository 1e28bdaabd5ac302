"""The page: self-contained, safe whatever the log holds, and right in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from phalanx.report import Format, render

from ..conftest import Diagnose

HOSTILE = (
    '[rank1]: <script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">\n'
    "[rank1]: torch.OutOfMemoryError: CUDA out of memory. <script>document.title='owned'</script> Tried to allocate 2.00 GiB.\n"
    "[rank0]: {{ 7*7 }} {% raise %} fine\n[rank2]: fine\n[rank3]: fine\n"
)
CHROMIUM = shutil.which("chromium")


def test_nothing_is_fetched_and_nothing_runs(diagnose: Diagnose) -> None:
    page = render(diagnose(HOSTILE), Format.HTML)
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']""", page)
    assert not re.search(r"https?://", page)
    assert "default-src 'none'" in page
    assert "&lt;script&gt;" in page


def test_the_line_of_the_exception_is_marked_among_the_lines_around_it(diagnose: Diagnose) -> None:
    log = 'a\nTraceback (most recent call last):\n  File "/home/user/t.py", line 7, in f\n    boom()\nZorkError: `<lamp>` is out\nb\n'
    page = render(diagnose(log), Format.HTML)
    assert '<span class="hit"><b>5</b>ZorkError: `&lt;lamp&gt;` is out</span>' in page
    assert "<b>3</b>  File &#34;/home/user/t.py&#34;" in page
    assert "<code>&lt;lamp&gt;</code>" in page, "words between backticks are code, and escaped"


def test_says_so_when_nothing_is_wrong(diagnose: Diagnose) -> None:
    page = render(diagnose("training finished\n"), Format.HTML)
    assert "Nothing wrong found" in page


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
def test_in_a_real_browser(diagnose: Diagnose, tmp_path: Path) -> None:
    page = tmp_path / "verdict.html"
    page.write_text(render(diagnose(HOSTILE), Format.HTML), encoding="utf-8")
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "HOME": str(tmp_path)}
    )
    dom = done.stdout
    assert "<title>Phalanx:" in dom, done.stderr[-2000:]
    assert "owned" not in re.findall(r"<title>(.*?)</title>", dom)[0]
    cells = re.findall(r'<div class="rank (\w+) *" title="([^"]*)">(\d+)</div>', dom)
    assert [(part, number) for part, _, number in cells] == [
        ("victim", "0"),
        ("culprit", "1"),
        ("victim", "2"),
        ("victim", "3"),
    ]
    assert len(re.findall(r'<section class="verdict', dom)) == 1
    assert 'class="hit"' in dom, "the evidence is shown in its context"
