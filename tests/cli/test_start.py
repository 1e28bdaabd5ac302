"""The command line starts at once: it loads what is asked for and no more, and the short way reads the words as Typer does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phalanx.cli import app
from phalanx.cli import diagnose as verb
from phalanx.cli.diagnosing import Request, plain_request
from phalanx.report import Format

_LOG = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
_RUN = """
import json, sys
sys.argv = ["phalanx", *{words!r}]
from phalanx.cli import main
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded(words: list[str], cache: Path) -> tuple[int, set[str], str]:
    """The status, the modules that were loaded, and what was printed."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _RUN.format(words=words)],
        capture_output=True, text=True, timeout=120, check=True, env=environment,
    )  # fmt: skip
    status, modules = json.loads(done.stderr.splitlines()[-1])
    return int(status or 0), set(modules), done.stdout


def test_a_log_is_diagnosed_without_what_only_other_verbs_need(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(_LOG)
    for _ in range(2):  # the rules are parsed, then come from the cache
        status, modules, printed = loaded(["diagnose", str(log), "--format", "json"], tmp_path / "cache")
        assert status == 1
        assert json.loads(printed)["verdict"]["symptom"] == "fail.out-of-memory"
    unwanted = {"typer", "rich", "pydantic", "polars", "numpy", "jinja2", "psutil", "phalanx.knowledge.loader"}
    unwanted |= {"pickle", "statistics", "tempfile", "phalanx.sources.traces.batch"}
    assert modules & unwanted == set()


def test_version_and_help_load_no_verb(tmp_path: Path) -> None:
    first = loaded(["--help"], tmp_path)[2]
    for words in (["--version"], ["--help"]):
        status, modules, printed = loaded(words, tmp_path)
        assert status == 0
        assert not any(name.startswith(("phalanx.diagnosis", "phalanx.sources", "phalanx.zoo")) for name in modules)
    assert printed == first, "descriptions come from the cache as they are"
    for name in ("diagnose", "faults", "rules", "run", "study", "trace"):
        assert f" {name} " in printed


@pytest.mark.parametrize(
    "words",
    [
        ["a.log"],
        ["a.log", "b", "-"],
        ["-a", "a.log"],
        ["a.log", "--all", "-f", "json"],
        ["--format=html", "--output=x.html", "a.log"],
        ["-o", "x.sarif", "--format", "sarif", "a.log"],
        ["a.log", "--output", "-f"],
    ],
)
def test_the_short_way_reads_the_words_as_typer_does(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []
    monkeypatch.setattr(verb, "Request", lambda *values: Request(*values))
    monkeypatch.setattr(Request, "run", lambda self: asked.append(self) or 0)
    done = CliRunner().invoke(app, ["diagnose", *words])
    assert done.exit_code == 0, done.output
    assert [plain_request(words)] == asked


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["-f", "json"], ["a.log", "-f"], ["a.log", "-f", "pdf"], ["--nope", "a.log"], ["-ajson", "a.log"], ["--", "-x"], [""]],
)  # fmt: skip
def test_all_else_is_left_to_typer(words: list[str]) -> None:
    assert plain_request(words) is None


def test_a_verb_of_its_own_module_and_unknown_ones() -> None:
    assert CliRunner().invoke(app, ["rules", "explain", "OOM001"]).exit_code == 0
    done = CliRunner().invoke(app, ["diagnos", "a.log"])
    assert done.exit_code == 2
    assert "diagnose" in done.output


def test_text_is_the_default() -> None:
    assert plain_request(["a.log"]) == Request(("a.log",), Format.TEXT, None, False)
