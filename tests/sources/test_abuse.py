"""Whatever is handed over: a clean result, never an exception, a hang or unbounded memory."""

from __future__ import annotations

import gzip
import random
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phalanx.diagnosis import diagnose_inputs
from phalanx.knowledge import load_rules
from phalanx.report import Format, render
from phalanx.sources import from_text

RULES = load_rules()
CASES = [text for rule in RULES for case in rule.cases for _, text in case.files]
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def check(data: bytes, name: str = "job.log") -> None:
    report = diagnose_inputs([from_text(name, data)], RULES)
    for form in (Format.JSON, Format.SARIF, Format.HTML):
        assert render(report, form)


@SETTINGS
@given(st.binary(max_size=4000))
def test_any_bytes(data: bytes) -> None:
    check(data)


@SETTINGS
@given(
    st.text(max_size=3000),
    st.sampled_from(["rank0.log", "exit_codes.json", "attempt_0/1/error.json", "report.md", "x/../../y.log"]),
)
def test_any_text_under_any_name(text: str, name: str) -> None:
    check(text.encode("utf-8", "surrogatepass"), name)


@SETTINGS
@given(st.data())
def test_mangled_real_logs(data: st.DataObject) -> None:
    """The fuzz run: real messages cut, spliced, repeated, interleaved, with bytes flipped."""
    seed = data.draw(st.integers(0, 2**32))
    generator = random.Random(seed)
    raw = bytearray("\n".join(generator.choice(CASES) for _ in range(generator.randrange(1, 5))).encode())
    for _ in range(generator.randrange(0, 30)):
        if not raw:
            break
        place = generator.randrange(len(raw))
        action = generator.randrange(5)
        if action == 0:
            raw[place] = generator.randrange(256)
        elif action == 1:
            del raw[place : place + generator.randrange(200)]
        elif action == 2:
            raw[place:place] = raw[place : place + 300] * generator.randrange(3)
        elif action == 3:
            raw[place:place] = generator.choice(
                [b"\n", b"\r", b"\x1b[", b"\x00", b"{", b"Traceback (most recent call last):\n", b"[rank1]: "]
            )
        else:
            raw = raw[:place]
    check(bytes(raw))


def test_deep_nesting() -> None:
    check(b'{"message":' * 50_000 + b"1" + b"}" * 50_000, "error.json")
    check(b"[" * 100_000, "exit_codes.json")
    check(b"  | " * 5000 + b"Traceback (most recent call last):\n" * 3000)


def test_thousands_of_tracebacks() -> None:
    block = b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nValueError: y\n'
    check(block * 20_000)


def test_expressions_do_not_blow_up_on_long_lines() -> None:
    literals = sorted({max(spec.literals, key=len) for rule in RULES for spec in rule.evidence if spec.literals})
    check("".join(literal * 3 + " " * 3000 + literal + "x" * 3000 + "\n" for literal in literals).encode())


@pytest.mark.parametrize("kind", ["one line", "gzip of zeros", "many small lines"])
def test_memory_stays_bounded(tmp_path: Path, kind: str) -> None:
    """100 MB and more of input in a process that may not take more than 1 GB of address space, libraries included."""
    path = tmp_path / "job.log"
    if kind == "one line":
        with path.open("wb") as file:
            for _ in range(100):
                file.write(b"step 1 loss nan Connection closed by peer " * 25_000)
    elif kind == "gzip of zeros":
        path.write_bytes(gzip.compress(b"a" + b"\n" * (300 << 20), 1))
    else:
        path.write_bytes(b"[rank1]: RuntimeError: Connection closed by peer\n" * 500_000)
    code = f"from phalanx.diagnosis import diagnose_paths; diagnose_paths([{str(path)!r}]); print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False, preexec_fn=limit
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) / 1024 < 400, "megabytes at the peak"
