"""Inputs: every way to hand over a log, and everything that is wrong with one."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tempfile
from pathlib import Path

import pytest
import zstandard

from phalanx.diagnosis import diagnose_paths
from phalanx.sources.inputs import find_inputs, plain_stream

TEXT = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n[rank0]: fine\n" * 3
SYMPTOM = "fail.out-of-memory"


def symptom_of(path: Path) -> str | None:
    verdict = diagnose_paths([str(path)]).verdict
    return verdict.symptom if verdict else None


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        gzip.compress(TEXT.encode()),
        zstandard.compress(TEXT.encode()),
        bz2.compress(TEXT.encode()),
        lzma.compress(TEXT.encode()),
        gzip.compress(zstandard.compress(TEXT.encode())),
        TEXT.encode("utf-16"),
        TEXT.encode("utf-16-le"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-32"),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.replace("\n", "\r\n").encode(),
        b"\xff\xfe\xfa garbage \x80\n" + TEXT.encode(),
        b"\x1b[31m" + TEXT.encode() + b"\x1b[0m",
    ],
    ids=["plain", "gzip", "zstd", "bz2", "xz", "gzip of zstd", "utf16", "utf16 no mark", "utf16 be", "utf32", "utf8 mark", "crlf", "bad bytes", "ansi"],
)  # fmt: skip
def test_form_does_not_matter(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "job.whatever"
    path.write_bytes(data)
    assert symptom_of(path) == SYMPTOM


@pytest.mark.parametrize("cut", [20, 60, -9])
@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress, lzma.compress])
def test_truncated_archives_are_said_and_never_raise(tmp_path: Path, compress: object, cut: int) -> None:
    path = tmp_path / "rank0.log.gz"
    body = os.urandom(4000).hex() + "\n" + TEXT
    path.write_bytes(compress(body.encode())[:cut])  # type: ignore[operator]
    (tmp_path / "rank1.log").write_text(TEXT)
    report = diagnose_paths([str(tmp_path)])
    assert report.verdict is not None
    assert any("rank0.log.gz" in item.what for item in report.not_checked)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize("place", [4, 30, 1000, 2500])
def test_flipped_bytes_in_archives_never_raise(tmp_path: Path, compress: object, place: int) -> None:
    raw = bytearray(compress((os.urandom(2000).hex() + "\n" + TEXT).encode()))  # type: ignore[operator]
    for offset in range(place, min(place + 8, len(raw))):
        raw[offset] ^= 0xFF
    (tmp_path / "rank0.log").write_bytes(bytes(raw))
    (tmp_path / "rank1.log").write_text(TEXT)
    report = diagnose_paths([str(tmp_path)])
    assert report.verdict is not None
    assert report.verdict.symptom == SYMPTOM


def test_what_stands_before_the_damage_is_not_lost(tmp_path: Path) -> None:
    body = TEXT.encode() + b"".join(os.urandom(40).hex().encode() + b"\n" for _ in range(5_000))
    path = tmp_path / "rank1.log.gz"
    path.write_bytes(gzip.compress(body)[:-20_000])
    report = diagnose_paths([str(path)])
    assert report.verdict is not None
    assert report.verdict.symptom == SYMPTOM
    assert any("rank1.log.gz" in item.what for item in report.not_checked)


def test_wrong_path_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(FileNotFoundError, match="give a log file"):
        find_inputs(["/no/such/file"])


def test_a_script_is_not_read_as_a_log(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise MemoryError\n")
    found, unchecked = find_inputs([str(script)])
    assert (found, unchecked[0].needs) == ([], f"`phalanx check {script}`")


def test_loops_of_links_devices_and_sockets_do_not_trap(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "rank0.log").write_text(TEXT)
    inputs, unchecked = find_inputs([str(tmp_path)])
    assert [one.name for one in inputs] == ["rank0.log"]
    assert {item.what.split(":")[0] for item in unchecked} == {"dangling", "pipe"}


def test_unreadable_file_is_listed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "rank0.log"
        path.write_text(TEXT)
        path.chmod(0)
        is_root = os.geteuid() == 0
        try:
            if is_root:  # root may read everything: look as nobody does
                os.seteuid(65534)
            inputs, unchecked = find_inputs([folder])
        finally:
            if is_root:
                os.seteuid(0)
    assert inputs == []
    assert unchecked[0].what == "rank0.log: Permission denied"


def test_binary_and_empty_files_are_said(tmp_path: Path) -> None:
    (tmp_path / "core.bin").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "rank0.log").write_bytes(b"")
    report = diagnose_paths([str(tmp_path)])
    assert report.verdict is None
    assert {item.what for item in report.not_checked if ":" in item.what} == {
        "core.bin: binary file",
        "rank0.log: empty",
    }


def test_plain_stream_reads_short_chunks() -> None:
    stream = plain_stream(io.BytesIO("héllo wörld\n".encode("utf-16") * 1))
    assert b"".join(iter(lambda: stream.read(3), b"")).decode() == "héllo wörld\n"
