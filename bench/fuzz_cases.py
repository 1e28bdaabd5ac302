"""Makes cases for `fuzz_diagnose.py`: folders of a few files, made of the rules' own samples of real output and then mangled."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import zstandard

from phalanx.knowledge import load_rules

_NAMES = (
    "rank0.log", "rank1.log", "rank137.log", "3/stderr.log", "job.log", "worker-2.out", "dmesg.txt", "report.md", "exit_codes.json",
    "attempt_0/1/error.json", "error.json", "watch.jsonl", "manifest.json", "nccl_trace_rank_0", "trace.json", "build.log", "issue.txt",
    "\x1b[31mred\x1b[0m.log", "<script>alert(1)<script>.log", "rank99999999999999999999.log", "a\nb.log", "\u202egol.txt",
)  # fmt: skip
_INSERTS: tuple[bytes, ...] = (
    b"\n", b"\r", b"\r\n", b"\x00" * 40, b"\x1b[31m", b"\x1b]0;owned\x07", b"\x1b[2J\x1b[H", b"\x9b31m", b"\xff\xfe", b"\xe2\x80\xae", b"{", b"}",
    b"Traceback (most recent call last):\n", b'  File "/a/train.py", line 7, in f\n', b"  + Exception Group Traceback (most recent call last):\n",
    b"During handling of the above exception, another exception occurred:\n", b"[rank1]: ", b"[1,3]<stderr>:", b"3: ", b"(RayTrainWorker pid=812, ip=10.0.0.5) ",
    b"<script>alert(1)</script>", b"\"><img src=x onerror=alert(1)>", b"{{ 7*7 }}{% raise %}", b"](javascript:alert(1))", b"[bold]x[/bold][/]",
    b"2024-13-45 99:99:99,999 ", b"I0000 00:00:99999999999.9 ", b"Jan 32 25:61:61 ", b"step 5/10 loss nan ", b"epoch 3 step 10 loss 1e999 ",
    b"10%|#         | 1/10 [00:01<00:09, 1.0it/s]\r", b"exitcode: -9 ", b"WORLD_SIZE=0 ", b"world_size=200001 ", b"password=hunter2hunter2 ",
)  # fmt: skip
_NUMBER = re.compile(rb"\d+")
_ODD_NUMBERS = (
    b"0",
    b"-1",
    b"99999999999999999999",
    b"9" * 5000,
    b"1e400",
    b"0x1f",
    "٣".encode(),
    "²".encode(),
    b"nan",
    b"00",
)
_PACKERS: tuple[Callable[[bytes], bytes], ...] = (
    gzip.compress,
    bz2.compress,
    lzma.compress,
    lambda data: zstandard.ZstdCompressor().compress(data),
)
_ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1")


@cache
def _samples() -> list[bytes]:
    return [text.encode() for rule in load_rules() for case in rule.cases for _, text in case.files]


def make_case(chance: Random, folder: Path) -> int:
    """Write a case into a folder; its size in bytes, unpacked."""
    size = 0
    for name in chance.sample(_NAMES, chance.choice((1, 1, 1, 2, 3, 5))):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data, unpacked = _mangled(chance)
        path.write_bytes(data)
        size += unpacked
    return size


def _mangled(chance: Random) -> tuple[bytes, int]:
    """A file, and how large it is once unpacked."""
    raw = bytearray(b"\n".join(chance.choice(_samples()) for _ in range(chance.randrange(1, 6))))
    for _ in range(chance.choice((0, 1, 3, 10, 30))):
        chance.choice(_CHANGES)(chance, raw)
    data = bytes(raw)
    if chance.random() < 0.04:
        data *= chance.randrange(2, 400)
    if chance.random() < 0.1:
        data = data.decode("utf-8", "replace").encode(chance.choice(_ENCODINGS), "replace")
    data = data[: 4 << 20]
    unpacked = len(data)
    if chance.random() < 0.1:
        data = chance.choice(_PACKERS)(data)
        if chance.random() < 0.6:
            damaged = bytearray(data)
            chance.choice((_flip, _cut_off, _cut_out))(chance, damaged)
            data = bytes(damaged)
    return data, unpacked


def _place(chance: Random, raw: bytearray) -> int:
    return chance.randrange(len(raw) + 1)


def _flip(chance: Random, raw: bytearray) -> None:
    for _ in range(min(len(raw), chance.randrange(1, 9))):
        raw[chance.randrange(len(raw))] = chance.randrange(256)


def _cut_off(chance: Random, raw: bytearray) -> None:
    del raw[_place(chance, raw) :]


def _cut_out(chance: Random, raw: bytearray) -> None:
    place = _place(chance, raw)
    del raw[place : place + chance.randrange(400)]


def _repeat(chance: Random, raw: bytearray) -> None:
    place = _place(chance, raw)
    raw[place:place] = raw[place : place + chance.randrange(600)] * chance.randrange(1, 6)


def _insert(chance: Random, raw: bytearray) -> None:
    place = _place(chance, raw)
    raw[place:place] = chance.choice(_INSERTS) * chance.choice((1, 1, 1, 2, 50))


def _splice(chance: Random, raw: bytearray) -> None:
    other, place = chance.choice(_samples()), _place(chance, raw)
    start = chance.randrange(len(other) + 1)
    raw[place:place] = other[start : start + chance.randrange(1000)]


def _interleave(chance: Random, raw: bytearray) -> None:
    """Lines of two ranks, each with its prefix."""
    form = chance.choice((b"[rank%d]: ", b"[1,%d]<stdout>:", b"%d: ", b"[default%d]:", b"worker-%d  | "))
    texts = [bytes(raw).split(b"\n"), chance.choice(_samples()).split(b"\n")]
    mixed = []
    while any(texts):
        rank = chance.randrange(2)
        if texts[rank]:
            mixed.append(form % rank + texts[rank].pop(0))
    raw[:] = b"\n".join(mixed)


def _change_numbers(chance: Random, raw: bytearray) -> None:
    share = chance.choice((0.02, 0.2))
    raw[:] = _NUMBER.sub(lambda match: chance.choice(_ODD_NUMBERS) if chance.random() < share else match[0], bytes(raw))


def _redraw(chance: Random, raw: bytearray) -> None:
    raw[:] = raw.replace(b"\n", chance.choice((b"\r", b"\r\n", b"\n\r", b"\\n", b" ", b"\n\n")))


def _lengthen(chance: Random, raw: bytearray) -> None:
    place = _place(chance, raw)
    raw[place:place] = chance.choice(
        (b"x", b" ", b"a ", b"[", b'{"a":', b"(", b"  | ", b"\\", b"'", b"0", b"-", b"\t")
    ) * chance.choice((300, 9000, 70_000))


_CHANGES = (
    _flip, _flip, _cut_off, _cut_out, _repeat, _insert, _insert, _insert, _insert, _splice, _splice, _interleave, _change_numbers, _redraw, _lengthen,
)  # fmt: skip
