"""Queries: shipped ones, the study's own, and what a preset may say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from phalanx.study.collect.post import Post
from phalanx.study.collect.presets import Preset, load_presets, pick
from phalanx.study.errors import StudyError

POST = Post("k", "issue", "o/r", 1, "u", "fine", "", None, "2024", "2024", None, (), (), "own")
WORDS = load_presets()["study-keras"]


def wants(preset: Preset, title: str, body: str = "", tags: tuple[str, ...] = (), *, settled: bool = True) -> bool:
    return preset.wants(replace(POST, title=title, body=body, tags=tags), settled=settled)


def test_every_project_has_a_preset() -> None:
    projects = [
        "horovod",
        "pytorch",
        "tensorflow",
        "keras",
        "deepspeed",
        "megatron-lm",
        "accelerate",
        "lightning",
        "ray",
        "nccl",
        "stackoverflow",
    ]
    assert set(projects) <= load_presets().keys()
    assert {
        f"study-{name}" for name in ("horovod", "pytorch", "tensorflow", "keras", "stackoverflow")
    } <= load_presets().keys()


def test_own_presets_and_bad_ones(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[mine]\nrepositories = ["a/b"]\nkeywords = "hang"\n')
    (mine,) = pick(["mine"], [], None, False, own)
    assert wants(mine, "It HANGS")
    assert not wants(mine, "fine")
    with pytest.raises(StudyError, match="no preset 'nothing'; known are"):
        pick(["nothing"], [], None, False, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[x]\nrepos = 1", "unknown key repos"),
        ('[x]\nrepositories = ["a"]', "OWNER/NAME"),
        ('[x]\nrepositories = "a/b"', "repositories is a list of texts"),
        ("[x]\nsite = 's'\ntags = [1]", "tags is a list of texts"),
        ("[x]\nsite = 's'\nsettled = 'yes'", "settled is true or false"),
        ("[x]\nsite = 1", "site is a text"),
        ("[x]\nsettled = true", "needs `repositories` or `site`"),
        ("x = 1", "expected a table"),
        ("[x", "not TOML"),
        ("[x]\nkeywords='('\nsite='s'", "no regular expression"),
    ],
)
def test_a_bad_preset_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(StudyError, match=words):
        load_presets(own)


@pytest.mark.parametrize(
    "title", ["Distributed training", "use multi_gpu?", "(data-parallel)", "on multiple GPUs", "a model with workers=4"]
)
def test_words_of_the_study_are_found(title: str) -> None:
    assert wants(WORDS, title)


@pytest.mark.parametrize(
    "title", ["redistributed", "multi_gpu_model fails", "parallelize", "non-parallel code", "multi gpu"]
)
def test_words_of_the_study_are_whole_words(title: str) -> None:
    assert not wants(WORDS, title)


def test_state_labels_tags_and_code() -> None:
    study = load_presets()["study-stackoverflow"]
    assert wants(study, "fine", tags=("horovod",)), "a tag that needs no words"
    assert not wants(study, "fine", tags=("horovod",), settled=False)
    assert not wants(study, "fine", "look\n```\nparallel = 2\n```\n", tags=("keras",)), "code is not asked"
    assert wants(study, "fine", "```\nx\n```\nin parallel\n```\ny\n```", tags=("keras",))
    assert not wants(WORDS, "distributed", tags=("STALE",))
    assert wants(WORDS, "distributed", tags=("stalemate",))


def test_another_query_has_another_name() -> None:
    names = {WORDS.identity, replace(WORDS, keywords=None).identity, replace(WORDS, settled=False).identity}
    assert len(names) == 3
    assert replace(WORDS).identity == WORDS.identity
