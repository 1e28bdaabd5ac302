"""What stands around every line of a log is taken off, and only that."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.sources.wrapping import unwrapped

LOG = """\
step 1 loss 2.31

Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    rows = table["x"] < 3
KeyError: 'x'
"""


def each(wrap: Callable[[int, str], str]) -> str:
    return "".join(wrap(number, line) + "\n" for number, line in enumerate(LOG.splitlines(), 1))


def docker(number: int, line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": f"2026-11-17T05:00:{number:02d}.5Z"})


def read(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    with unwrapped(io.BufferedReader(io.BytesIO(raw)))[0] as stream:
        return stream.read().decode("utf-8", "replace")


WRAPPED = {
    "journal": each(lambda n, line: f"Nov 17 05:01:{n:02d} node1 train[4711]: {line}"),
    "times": each(lambda n, line: f"05:01:{n:02d} {line}"),
    "numbers": each(lambda n, line: f"{n:6d}\t{line}"),
    "indent": each(lambda _, line: f"    {line}" if line else ""),
    "quote": each(lambda _, line: f"> {line}" if line else ">"),
    "page": html.escape(LOG, quote=True),
}


@pytest.mark.parametrize("kind", sorted(WRAPPED))
def test_lines_are_as_before_they_were_wrapped(kind: str) -> None:
    assert read(WRAPPED[kind]) == LOG
    assert read(WRAPPED[kind].replace("\n", "\r\n")) == LOG.replace("\n", "\r\n")
    assert read(WRAPPED[kind].rstrip("\n")) == LOG.rstrip("\n")


@pytest.mark.parametrize("key", ["msg", "message", "textPayload"])
def test_other_collectors_say_it_by_other_names(key: str) -> None:
    text = each(lambda _, line: json.dumps({"severity": "ERROR", key: line, "labels": {"pod": "a"}}))
    assert read(text) == LOG


def test_a_whole_time_is_kept_as_collectors_write_it() -> None:
    lines = read(each(lambda n, line: f"[2026-11-17 05:01:{n:02d}] {line}")).splitlines()
    assert lines[3] == '2026-11-17T05:01:04.0Z   File "/home/user/train.py", line 9, in <module>'
    logged = "2026-11-17 05:01:02,123 INFO step 1\n2026-11-17 05:01:03,123 INFO step 2\n" * 4
    assert read(logged) == logged


def test_docker_keeps_the_times() -> None:
    lines = read(each(docker)).splitlines()
    assert lines[5] == "2026-11-17T05:00:06.5Z KeyError: 'x'"
    assert len(lines) == len(LOG.splitlines())


@pytest.mark.parametrize("wrapped", [*WRAPPED.values(), each(docker)])
def test_the_verdict_points_at_the_lines_of_the_file(tmp_path: Path, wrapped: str) -> None:
    (tmp_path / "job.log").write_text(wrapped)
    finding = diagnose_paths([str(tmp_path / "job.log")]).findings[0]
    assert "KeyError" in finding.evidence[0].text
    assert finding.evidence[0].line in (3, 6)


@pytest.mark.parametrize(
    "text",
    [
        LOG,
        "",
        "  one line\n",
        "1\t0.5\n2\t0.4\n3\t0.3\n4\t0.2\n",  # steps, not numbers of lines
        "0: a\n1: b\n2: c\n3: d\n",  # srun's labels
        '{"rank": 0}\n{"rank": 1}\n{"rank": 2}\n{"rank": 3}\n',
        '{"msg": "step", "rank": 0}\n{"msg": "step", "rank": 1}\n{"msg": "step", "rank": 2}\n',  # tells more
        '{"log": 3}\n{"log": [1]}\n{"log": {}}\n[]\n',
        "Nov 17 05:01:02 node1 kernel: Out of memory\n" * 4,
        "Nov 17 05:01:02 node1 a[1]: x\nNov 17 05:01:02 node2 a[1]: y\nNov 17 05:01:02 node1 a[1]: z\n",
        ">>> import torch\n>>> torch.cuda\n>>> x\n",
        "a &lt; b\nc &gt; d\ne &amp; f\n<html>\n",
    ],
)
def test_what_is_not_wrapped_stays(text: str) -> None:
    assert read(text) == text


def test_lines_of_other_kinds_among_wrapped_ones_stay() -> None:
    text = WRAPPED["journal"] * 400 + "Nov 17 05:02:02 node1 kernel: oom-kill\nnot wrapped\n"
    assert read(text) == LOG * 400 + "Nov 17 05:02:02 node1 kernel: oom-kill\nnot wrapped\n"
    broken = each(docker) * 400 + '{"log": "cut o'
    assert read(broken).endswith('{"log": "cut o')


def test_a_line_without_end_is_passed_on_in_parts() -> None:
    long = b"x" * (3 << 20)
    raw = WRAPPED["quote"].encode() + b"> " + long + b"\n> last\n"
    assert read(raw) == LOG + long.decode() + "\nlast\n"
