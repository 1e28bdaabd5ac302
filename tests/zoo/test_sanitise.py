"""Recorded logs hold nothing of the recording machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.zoo.sanitise import Sanitiser


@pytest.fixture
def sanitiser(tmp_path: Path) -> Sanitiser:
    venv = tmp_path / "venv"
    venv.mkdir()
    (venv / "pyvenv.cfg").write_text("home = /somewhere/python/3.11/bin\nversion = 3.11\n", encoding="utf-8")
    return Sanitiser(tmp_path / "scratch", venv, host="vm")


def test_folders_and_environment_get_neutral_names(tmp_path: Path, sanitiser: Sanitiser) -> None:
    text = (
        f'File "{tmp_path}/scratch/job/train.py", line 3\n'
        f'File "{tmp_path}/venv/lib/python3.11/site-packages/torch/x.py", line 4\n'
        'File "/somewhere/python/3.11/lib/python3.11/runpy.py", line 5\n'
        f"log dir: {tmp_path}/scratch/tmp/torchelastic_1\n"
    )
    assert sanitiser.clean(text) == (
        'File "/home/user/job/train.py", line 3\n'
        'File "/opt/venv/lib/python3.11/site-packages/torch/x.py", line 4\n'
        'File "/usr/lib/python3.11/runpy.py", line 5\n'
        "log dir: /var/tmp/torchelastic_1\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  host      : vm", "  host      : node0"),
        ("connect to [vm]:29500 (vm)", "connect to [node0]:29500 (node0)"),
        ("node 'vm_1234_0' left", "node 'node0_1234_0' left"),
        ("set vm.overcommit_memory, see /proc/vm", "set vm.overcommit_memory, see /proc/vm"),
        ("llvm and vmlinux", "llvm and vmlinux"),
    ],
)
def test_the_host_name_is_replaced_only_where_it_stands_alone(sanitiser: Sanitiser, text: str, expected: str) -> None:
    assert sanitiser.clean(text) == expected


def test_pip_sources_are_left_out(sanitiser: Sanitiser) -> None:
    text = "Looking in indexes: https://example.org/simple\nLooking in links: /wheels\nProcessing ./x\n"
    assert sanitiser.clean(text) == "Processing ./x\n"


def test_odd_bytes_and_carriage_returns_survive(tmp_path: Path, sanitiser: Sanitiser) -> None:
    file = tmp_path / "job.log"
    file.write_bytes(b"10%\r20%\r\n\xff on vm\n")
    sanitiser.clean_file(file)
    assert file.read_bytes() == b"10%\r20%\r\n\xff on node0\n"


def test_where_pip_built_something_is_left_out(sanitiser: Sanitiser) -> None:
    text = "D /tmp/pip-wheel-v5_hxmqd/horovod_f40d/horovod/common/operations.cc:107] up\n"
    assert sanitiser.clean(text) == "D /var/tmp/pip-wheel-x/horovod_f40d/horovod/common/operations.cc:107] up\n"
