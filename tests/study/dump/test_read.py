"""The dump reader: finds what an XML parser finds, however the dump is cut, packed, spelled or damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import polars
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from phalanx.cli import app
from phalanx.study.collect.post import Post
from phalanx.study.collect.presets import Preset
from phalanx.study.collect.store import Store
from phalanx.study.dump import read
from phalanx.study.dump.engines import on_processes, pick_engine
from phalanx.study.dump.read import Range, find_in_range, read_dump
from phalanx.study.dump.rows import whole_rows
from phalanx.study.errors import StudyError

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
from make_dump import write_dump

PRESET = Preset(
    "so",
    site="stackoverflow",
    tags=("pytorch", "tensorflow", "keras", "horovod"),
    keywords=re.compile("distribut", re.I),
)
ONE = on_processes(1)


def row(number: int, title: str = "distributed", tags: str = "&lt;pytorch&gt;", body: str = "b", more: str = "") -> str:
    return f'  <row Id="{number}" PostTypeId="1" CreationDate="2020-01-01T00:00:00.000" Body="{body}" Title="{title}" Tags="{tags}" {more}/>\r\n'


def dump(*rows: str) -> bytes:
    return ('\ufeff<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n' + "".join(rows) + "</posts>\r\n").encode()


def posts_of(path: Path, folder: Path, preset: Preset = PRESET) -> list[Post]:
    with Store(folder) as store:
        read_dump(store, preset, path, ONE)
        return list(store.posts())


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "Posts.xml"
    write_dump(path, 6 << 20)
    return path


def by_a_parser(path: Path) -> set[int]:
    wanted = set()
    for _, element in ElementTree.iterparse(path):
        tags = set(re.findall(r"<([^>]+)>", element.get("Tags") or ""))
        text = f"{element.get('Title')} {element.get('Body')}"
        if element.get("PostTypeId") == "1" and tags & set(PRESET.tags) and re.search("distribut", text, re.I):
            wanted.add(int(element.get("Id") or 0))
    return wanted


def test_the_same_questions_as_an_xml_parser_finds(generated: Path, tmp_path: Path) -> None:
    expected = by_a_parser(generated)
    assert len(expected) > 3
    assert {post.number for post in posts_of(generated, tmp_path)} == expected


@pytest.mark.parametrize("packing", ["zst", "gz", "bz2", "xz", "7z"])
def test_every_packing_gives_the_same(generated: Path, tmp_path: Path, packing: str) -> None:
    data = generated.read_bytes()[: 1 << 20]
    data = data[: data.rfind(b"<row ")] + b"</posts>"
    plain = tmp_path / "plain.xml"
    plain.write_bytes(data)
    packed = tmp_path / f"Posts.xml.{packing}"
    if packing == "7z":
        py7zr = pytest.importorskip("py7zr", reason="reading .7z needs the extra `study`")
        with py7zr.SevenZipFile(packed, "w") as archive:
            archive.write(plain, "Posts.xml")
    else:
        pack = {
            "zst": lambda raw: zstandard.compress(raw[:99]) + zstandard.compress(raw[99:]),
            "gz": gzip.compress,
            "bz2": bz2.compress,
            "xz": lzma.compress,
        }
        packed.write_bytes(pack[packing](data))
    assert posts_of(packed, tmp_path / "a") == posts_of(plain, tmp_path / "b") != []


@given(st.lists(st.integers(1, 400), max_size=30), st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_a_stream_cut_anywhere_gives_whole_rows(lengths: list[int], count: int) -> None:
    data = dump(*(row(number) for number in range(count)))
    blocks, place = [], 0
    for length in lengths:
        blocks.append(data[place : place + length])
        place += length
    pieces = list(whole_rows([block for block in [*blocks, data[place:]] if block]))
    assert b"".join(pieces) == data
    assert all(piece.startswith(b"<row ") for piece in pieces[1:])


@pytest.mark.parametrize("size", [1, 7, 100, 150, 1000])
def test_ranges_of_any_size_share_the_rows_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(read, "_LOOK", 8)
    path = tmp_path / "Posts.xml"
    path.write_bytes(dump(*(row(number) for number in range(12))))
    total = path.stat().st_size
    found = [
        find_in_range(Range(str(path), start, min(start + size, total), PRESET)) for start in range(0, total, size)
    ]
    assert [post.number for part in found for post in part.posts] == list(range(12))
    assert sum(part.rows for part in found) == 12


def test_both_spellings_of_tags_and_a_tag_in_a_text_selects_nothing(tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml"
    path.write_bytes(
        dump(
            row(1, tags="|python|pytorch|"),
            row(2, tags="&lt;python&gt;", body="&lt;pytorch&gt; |keras|"),
            row(3, tags="&lt;pytorch-geometric&gt;"),
            row(4, title="sorting"),
            row(5, tags="&lt;a&gt;&lt;Keras&gt;", body="a &amp;lt; b&#xA;&lt;pre&gt;log&lt;/pre&gt;"),
        )
    )
    posts = {post.number: post for post in posts_of(path, tmp_path / "store")}
    assert sorted(posts) == [1, 5]
    assert posts[1].tags == ("python", "pytorch")
    assert posts[5].body == "a < b\n\n```\nlog\n```"


def test_bad_rows_odd_bytes_and_deleted_users_are_counted_not_fatal(tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml"
    data = dump(
        row(1, more='OwnerUserId="7" '),
        row(2, more='OwnerDisplayName="user5" '),
        row(3),
        row(4, body="control &#x1; character"),
        row(5, body="BYTES"),
        '<row Id="6" PostTypeId="1" Tags="&lt;pytorch&gt;" Title="distributed \r\n',
        row(7).replace("Title", "Titel"),
    )
    path.write_bytes(data.replace(b"BYTES", b"\xff\xfe latin \xe9"))
    with Store(tmp_path / "store") as store:
        found = read_dump(store, PRESET, path, ONE)
        posts = {post.number: post for post in store.posts()}
        problems = store.problems()
    assert found.rows == 7
    assert {number: post.author for number, post in posts.items()} == {1: "7", 2: "user5", 3: None, 4: None, 5: None}
    assert "latin" in posts[5].body
    assert store.counts.bad == 4
    assert {times for *_, times in problems} <= {1, 2}


def test_an_interrupted_run_goes_on_after_the_last_kept_range(
    generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "RANGE", 1 << 20)
    whole = {post.number for post in posts_of(generated, tmp_path / "whole")}

    def failing(work: object, ranges: list[Range]) -> object:
        for count, one in enumerate(ranges):
            if count == 3:
                raise KeyboardInterrupt
            yield one, find_in_range(one)

    seen: list[Range] = []

    def counting(work: object, ranges: list[Range]) -> object:
        seen.extend(ranges)
        for one in ranges:
            yield one, find_in_range(one)

    with Store(tmp_path / "part") as store, pytest.raises(KeyboardInterrupt):
        read_dump(store, PRESET, generated, failing)  # type: ignore[arg-type]
    with Store(tmp_path / "part") as store:
        read_dump(store, PRESET, generated, counting)  # type: ignore[arg-type]
        assert {post.number for post in store.posts()} == whole
    assert seen[0].start == 3 << 20


def test_a_packed_dump_is_resumed_by_its_place(
    generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_BATCH", 1)
    packed = tmp_path / "Posts.xml.zst"
    packed.write_bytes(zstandard.compress(generated.read_bytes()))
    parts = 0
    with Store(tmp_path / "s") as store:
        for name, state, found in read._stream(store, PRESET, packed):
            store.add_page(found.posts, name, state)
            parts += 1
            if parts == 1:
                break
        before = len(store)
    with Store(tmp_path / "s") as store:
        read_dump(store, PRESET, packed, ONE)
        assert len(store) > before
        assert {post.number for post in store.posts()} == by_a_parser(generated)
        assert store.counts.unchanged == 0


def test_several_processes_find_the_same_and_memory_stays_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "Posts.xml"
    write_dump(path, 24 << 20)
    code = """
import re, resource, sys
from pathlib import Path
from phalanx.study.collect.presets import Preset
from phalanx.study.collect.store import Store
from phalanx.study.dump import read
from phalanx.study.dump.engines import on_processes
if __name__ == "__main__":
    read.RANGE = 4 << 20
    preset = Preset("so", site="stackoverflow", tags=("pytorch", "tensorflow", "keras", "horovod"), keywords=re.compile("distribut", re.I))
    with Store(Path(sys.argv[2])) as store:
        read.read_dump(store, preset, Path(sys.argv[1]), on_processes(2))
        print(len(store), sum(post.number for post in store.posts()))
"""
    script = tmp_path / "go.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script), str(path), str(tmp_path / "s")],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    expected = by_a_parser(path)
    assert done.stdout.split() == [str(len(expected)), str(sum(expected))], done.stderr


def test_what_is_no_dump_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text("hello\n" * 100)
    with pytest.raises(StudyError, match=r"no row was found. Is it the Posts.xml"):
        posts_of(path, tmp_path / "a")
    with pytest.raises(StudyError, match="cannot be read"):
        posts_of(tmp_path / "nothing", tmp_path / "b")
    cut = tmp_path / "cut.xz"
    cut.write_bytes(lzma.compress(dump(row(1)) * 100)[:-40])
    with pytest.raises(StudyError, match="damaged or cut off"):
        posts_of(cut, tmp_path / "c")
    with pytest.raises(StudyError, match="names no site"):
        posts_of(path, tmp_path / "d", Preset("x", ("a/b",)))
    with pytest.raises(StudyError, match="no engine 'moon'"):
        pick_engine("moon")


def test_the_command_reads_a_dump_into_a_collection(generated: Path, tmp_path: Path) -> None:
    command = [
        "study",
        "collect",
        "stackoverflow",
        "--dump",
        str(generated),
        "--into",
        str(tmp_path / "c"),
        "--processes",
        "1",
    ]
    first, second = (CliRunner().invoke(app, command) for _ in range(2))
    assert first.exit_code == second.exit_code == 0, first.output
    kept = len(polars.read_parquet(tmp_path / "c/posts/*.parquet"))
    assert kept >= len(by_a_parser(generated)) > 0
    assert f"{kept} new" in first.output
    assert "0 new" in second.output, "a dump that was read is not read again"
