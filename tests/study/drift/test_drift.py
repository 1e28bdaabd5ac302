"""What is new: rises that are no chance, messages no rule knows, what a release introduced, drafts that load."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from phalanx.cli import app
from phalanx.knowledge import load_rules
from phalanx.knowledge.loader import load_rule
from phalanx.study.drift.drafts import Unknown, write_drafts
from phalanx.study.drift.messages import expression_of, find_messages, template_of
from phalanx.study.drift.survey import survey
from phalanx.study.drift.trends import at_least, find_introduced, find_rises, versions_in
from phalanx.study.errors import StudyError

NEW = "[rank{rank}]: ZorkMeshError: lamp {number} of shard /data/run{number}/x.bin went out after {number} steps"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {number}.00 GiB."


def post(number: int, day: int, body: str) -> dict[str, Any]:
    created = (date(2024, 1, 1) + timedelta(days=day)).isoformat() + "T00:00:00Z"
    return {"key": f"github:o/r#{number}", "title": "help", "body": body, "created": created, "duplicate_of": None}


def collection() -> list[dict[str, Any]]:
    dice = random.Random(2)
    posts = []
    for number in range(200):
        version = "2.10" if number < 160 else "2.13"
        body = (
            f"PyTorch version: {version}.1\n```\n{OOM.format(number=number % 7)}\n```"
            if number % 5 == 0
            else f"torch=={version}\nnothing is printed {dice.random()}"
        )
        posts.append(post(number, number * 3, body))
    crash = "torch version: 2.13\n```\nTraceback (most recent call last):\n" + NEW + "\n```"
    posts += [
        post(number, 580 + number % 15, crash.format(rank=number % 4, number=number)) for number in range(200, 208)
    ]
    return posts


def test_messages_are_told_from_words_and_prefixes_fall_away() -> None:
    text = f"My job failed with an error, I think.\n{NEW.format(rank=3, number=5)}\n2024-01-01 10:00:00.1 node1:1:2 [0] NCCL WARN Call to connect returned Connection refused\nKeyError\nall fine"
    found = [message.template for message in find_messages(text)]
    assert found == [
        "node1:<number>:<number> <shape> NCCL WARN Call to connect returned Connection refused",
        "ZorkMeshError: lamp <number> of shard <path> went out after <number> steps",
    ]


def test_lines_that_differ_in_numbers_and_names_are_one_template() -> None:
    first = template_of("RuntimeError: shape [2, 3] at 0xdeadbeef of 'fc1' from 10.0.0.1:29500 in /home/me/a.py")
    assert first == template_of(
        "RuntimeError: shape [12, 31, 4] at 0x1 of 'encoder.fc' from 10.7.0.11:29501 in /opt/x/y/b.py"
    )


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=80))
@settings(max_examples=200, deadline=None)
def test_an_expression_matches_the_line_it_was_made_from(text: str) -> None:
    line = " ".join(f"ZorkError: {text} at 0x1f in [1, 2]".split())
    template = template_of(line)
    if "<" not in text:
        assert re.search(expression_of(template), line), (template, expression_of(template))


def test_a_rise_is_told_from_chance() -> None:
    assert at_least(0, 10, 0.1) == 1
    assert at_least(2, 2, 0.5) == pytest.approx(0.25)
    rises = find_rises({"up": (5, 25), "flat": (90, 10), "rare": (0, 1)}, posts_before=900, posts_recent=100)
    assert [rise.name for rise in rises] == ["up"]
    dice = random.Random(1)
    flat = {}
    for number in range(300):
        seen = [dice.random() < 0.1 for _ in range(40)]
        flat[str(number)] = (seen.count(False), seen.count(True))
    assert len(find_rises(flat, 900, 100)) <= 2, "of three hundred flat ones hardly any is called a rise"


def test_what_a_release_introduced() -> None:
    assert versions_in("PyTorch version: 2.13.0+cpu, NCCL version 2.21.5, CUDA: 12.4, horovod==0.28.1") == {
        "torch": "2.13",
        "nccl": "2.21",
        "cuda": "12.4",
        "horovod": "0.28",
    }
    everything = [{"torch": "2.9"}] * 60 + [{"torch": "2.10"}] * 20
    (only,) = find_introduced(
        {"new": [{"torch": "2.10"}] * 4, "old": [{"torch": "2.9"}, {"torch": "2.10"}, {"torch": "2.10"}, {}]},
        everything,
    )
    assert (only.name, only.library, only.release, only.earlier_posts) == ("new", "torch", "2.10", 60), (
        "2.10 is later than 2.9"
    )


def test_a_survey_finds_the_new_message_and_drafts_a_rule_that_loads_and_fires(tmp_path: Path) -> None:
    rows = [*collection(), post(999, 0, "x") | {"duplicate_of": "github:o/r#1"}, post(998, 0, "x") | {"created": "?"}]
    path = tmp_path / "posts.parquet"
    polars.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    labels = tmp_path / "labels.csv"
    keys = [row["key"] for row in rows]
    symptoms = ["fail.device-error" if int(key.partition("#")[2]) >= 200 else "perf.hang" for key in keys]
    polars.DataFrame({"key": keys, "symptom": symptoms, "fix": ["change-hardware"] * len(keys)}).write_csv(labels)
    out = tmp_path / "drift"
    done = CliRunner().invoke(app, ["study", "drift", str(path), "--labels", str(labels), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "1 repeat another, 1 without a time" in done.output
    assert "rises: fail.device-error" in done.output
    assert "rises: ZorkMeshError" in done.output
    assert "since torch 2.13: ZorkMeshError" in done.output
    assert "OutOfMemoryError" not in (out / "unknown.csv").read_text(), "a rule knows it"
    (draft,) = out.glob("rules/*/*.md")
    rule = load_rule(draft)
    assert (rule.status, rule.symptom, rule.fixes[0].pattern) == ("preview", "fail.device-error", "change-hardware")
    assert rule.code.startswith("DEV9")
    root = next(spec for spec in rule.evidence if spec.line is not None)
    assert root.line is not None
    assert root.line.search("ZorkMeshError: lamp 77 of shard /other/place/y.bin went out after 12 steps")
    assert not root.line.search("ZorkMeshError: all lamps are on")
    assert "<script" not in (out / "drift.html").read_text()


@given(st.text(min_size=12, max_size=120).filter(lambda text: text.isprintable()))
@settings(max_examples=100, deadline=None)
def test_a_draft_loads_or_is_refused_with_a_reason(text: str) -> None:
    line = f"ZorkError: {text}"
    drafts, refused = write_drafts([Unknown(template_of(line), line, ("a", "b"), "perf.hang", None)], load_rules())
    assert len(drafts) + len(refused) == 1


def test_codes_of_drafts_differ_and_a_collection_without_times_is_refused() -> None:
    unknown = [
        Unknown(template_of(line), line, ("a",), "fail.other", None)
        for line in ("ZorkError: the lamp broke", "QuuxError: the wheel fell off")
    ]
    drafts, _ = write_drafts(unknown, load_rules())
    assert len({draft.code for draft in drafts}) == 2
    with pytest.raises(StudyError, match="no issue has a time"):
        survey([{"key": "a", "body": "b"}], {}, lambda _: None, load_rules())
