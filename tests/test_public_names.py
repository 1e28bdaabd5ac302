"""What users may rely on: the names of `phalanx`, and nothing else."""

from __future__ import annotations

import subprocess
import sys

PUBLIC = {
    "Call", "CallCancelled", "CannotStart", "Function", "JobFailed", "JobTimedOut", "NotFinished", "PhalanxError", "Report",
    "Status", "__version__", "attach", "attempt", "check", "checkpoint", "checkpoints", "diagnose", "function",
    "last_checkpoint", "verify",
}  # fmt: skip


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_public_names_are_these() -> None:
    import phalanx

    assert set(phalanx.__all__) == PUBLIC
    assert set(dir(phalanx)) == PUBLIC
    for name in PUBLIC:
        assert getattr(phalanx, name) is not None


def test_a_verb_stays_a_function_after_it_was_used() -> None:
    said = python(
        "import phalanx, tempfile, pathlib\n"
        "log = pathlib.Path(tempfile.mkdtemp()) / 'a.log'; log.write_text('step 1\\n')\n"
        "phalanx.diagnose(log); phalanx.check(pathlib.Path(phalanx.__file__))\n"
        "print(all(callable(getattr(phalanx, name)) for name in ('diagnose', 'attach', 'check', 'verify')))"
    )
    assert said == "True"


def test_as_a_module_the_check_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "phalanx.check", "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert "Look for what would stop a job" in done.stdout
