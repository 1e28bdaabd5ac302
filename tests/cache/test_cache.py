"""What is kept comes back whole, or counts as missing: damage, strangers and read-only folders cost nothing but time."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import hyperscan
import pytest

from phalanx import cache
from phalanx.knowledge import load_rules, stored
from phalanx.knowledge.pack import RulePack, _stored_pack, load_bare_rules, load_folders, rule_folders
from phalanx.sources import database
from phalanx.sources.scanner import Needle, NeedleSet


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PHALANX_NO_CACHE", raising=False)
    return tmp_path / "phalanx"


def test_what_was_saved_is_loaded(folder: Path) -> None:
    assert cache.load("thing", "a") is None
    cache.save("thing", "a", b"payload")
    assert cache.load("thing", "a") == b"payload"
    assert cache.load("thing", "b") is None
    assert folder.stat().st_mode & 0o077 == 0


def test_keys_tell_parts_apart() -> None:
    assert cache.key_of(["ab", "c"]) != cache.key_of(["a", "bc"]) != cache.key_of([b"ab", b"c", b""])
    assert cache.key_of(["ab", "c"]) == cache.key_of([b"ab", b"c"])


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign format", "folder instead"])
def test_damage_counts_as_missing(folder: Path, damage: str) -> None:
    cache.save("thing", "a", b"payload" * 100)
    path = folder / "thing-a"
    raw = path.read_bytes()
    if damage == "folder instead":
        path.unlink()
        path.mkdir()
    else:
        changed = {"cut": raw[:-3], "flipped": raw[:-1] + b"X", "empty": b"", "foreign format": b"payload" * 100}
        path.write_bytes(changed[damage])
    assert cache.load("thing", "a") is None
    cache.save("thing", "a", b"new")
    assert cache.load("thing", "a") == (None if damage == "folder instead" else b"new")


def test_files_of_another_user_are_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.save("thing", "a", b"payload")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache.load("thing", "a") is None


def test_no_folder_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache.save("thing", "a", b"payload")
    assert cache.load("thing", "a") is None
    assert NeedleSet([Needle("a.c", True)]).scan(b"abc") == [(3, 0)]


def test_it_can_be_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHALANX_NO_CACHE", "1")
    cache.save("thing", "a", b"payload")
    assert not folder.exists()


def test_it_does_not_grow_for_ever(folder: Path) -> None:
    for number in range(40):
        cache.save("thing", str(number), b"payload")
    assert len(list(folder.iterdir())) < 20
    assert cache.load("thing", "39") == b"payload"


def test_needles_from_the_cache_find_the_same(folder: Path) -> None:
    needles = [Needle("boom"), Needle("Warned", ignores_case=True), Needle(r"loss\W+nan", True)]
    data = b"boom WARNED loss: nan\n" * 3
    fresh = NeedleSet(needles).scan(data)
    kept = sorted(folder.iterdir())
    assert len(kept) == 3
    assert NeedleSet(needles).scan(data) == fresh
    for path in kept:  # a good frame around a database that this engine does not take
        cache.save(*path.name.split("-", 1), b"no database")
    assert NeedleSet(needles).scan(data) == fresh
    assert cache.load(*kept[0].name.split("-", 1)) != b"no database"


def test_refused_expressions_are_refused_again(folder: Path) -> None:
    for _ in range(2):
        with pytest.raises(hyperscan.error):
            database.compiled([b"(unclosed"], [0], [0], kept_as="needles")
    assert not folder.exists()


def test_rules_come_back_as_they_were(folder: Path) -> None:
    parsed = load_folders(rule_folders())
    assert stored.from_json(*stored.to_json(parsed.rules, ["a problem"])) == (list(parsed.rules), ["a problem"])
    assert _stored_pack(rule_folders()) == parsed
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {"rules", "prose", "packs"}
    assert _stored_pack(rule_folders()) == parsed
    assert load_rules() == tuple(rule for rule in parsed.rules if rule.is_active)


def test_bare_rules_lack_only_what_people_read(folder: Path) -> None:
    whole = _stored_pack(rule_folders())
    load_bare_rules.cache_clear()
    bare = [replace(rule, sections={}, cases=()) for rule in whole.rules]
    assert list(_stored_pack(rule_folders(), is_bare=True).rules) == bare
    assert list(load_bare_rules()) == [rule for rule in bare if rule.is_active]


def test_a_package_with_rules_is_found_once_it_is_installed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "more_rules").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    before = rule_folders()
    assert rule_folders() == before
    meta = tmp_path / "site" / "more_rules-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: more-rules\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text("[phalanx.rules]\nmore = more_rules\n")
    assert rule_folders() == [*before, tmp_path / "site" / "more_rules"]
    for nonsense in (b"{", b"3"):
        (kept,) = (path for path in folder.iterdir() if b"more_rules" in path.read_bytes())
        cache.save(*kept.name.split("-", 1), nonsense)
        assert rule_folders() == [*before, tmp_path / "site" / "more_rules"]


def test_a_changed_rule_is_parsed_anew(tmp_path: Path, folder: Path) -> None:
    source = next(path for path in sorted(rule_folders()[0].rglob("*.md")))
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "one.md").write_text(source.read_text())
    before = _stored_pack([rules])
    (rules / "one.md").write_text(source.read_text().replace("\n# ", "\n# Changed: "))
    after = _stored_pack([rules])
    assert isinstance(before, RulePack)
    assert after.rules[0].title == f"Changed: {before.rules[0].title}"


def test_a_stored_pack_that_is_no_pack_is_parsed_anew(folder: Path) -> None:
    expected = _stored_pack(rule_folders())
    for kind in ("rules", "prose"):
        (path,) = folder.glob(f"{kind}-*")
        for nonsense in (b"[]", b"{", b'{"rules": [{}], "problems": []}', b'{"rules": 3}'):
            cache.save(*path.name.split("-", 1), nonsense)
            assert _stored_pack(rule_folders()) == expected
