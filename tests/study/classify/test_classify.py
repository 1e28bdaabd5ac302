"""Learning from labelled texts, and labelling new ones: measured on texts not seen, and never by running a file's code."""

from __future__ import annotations

import csv
import io
import pickle
import random
from pathlib import Path

import polars
import pytest
from typer.testing import CliRunner

from phalanx.cli import app
from phalanx.study.classify.apply import classify, score
from phalanx.study.classify.labelled import Labelled, read_labelled
from phalanx.study.classify.model import Model, load_model
from phalanx.study.classify.train import Evaluation, macro_f1, miscalibration, train
from phalanx.study.errors import StudyError

numpy = pytest.importorskip("numpy", reason="the text model needs the extra `study`")
pytest.importorskip("sklearn", reason="training needs the extra `study`")

KINDS = {
    "fail.out-of-memory": (
        "fix-batch-size-or-data-partition",
        "memory cuda allocate batch smaller gigabytes exhausted",
    ),
    "perf.hang": ("fix-communication-configuration", "stuck forever waiting barrier collective never returns frozen"),
    "build.import-error": ("fix-dependency-path", "import module missing shared object library path loader"),
}
FILLER = [
    "the",
    "my",
    "code",
    "training",
    "when",
    "run",
    "error",
    "with",
    "and",
    "model",
    "it",
    "i",
    "we",
    "use",
    "version",
    "example",
    "please",
    "help",
]


def corpus(count: int = 150, noise: float = 0.0) -> list[Labelled]:
    dice = random.Random(3)
    made = []
    for number in range(count):
        symptom = dice.choice(list(KINDS))
        fix, words = KINDS[symptom]
        if number % 4 == 0:
            text = " ".join(
                [
                    *dice.choices(FILLER, k=20),
                    *dice.choices(["how", "can", "should", "way", "question", "documentation", "recommended"], k=6),
                ]
            )
            made.append(Labelled(text, {"type": "how-to question", "symptom": None, "fix": None, "distributed": None}))
            continue
        text = " ".join(dice.sample([*dice.choices(FILLER, k=20), *dice.choices(words.split(), k=5)], 25))
        said = dice.choice(list(KINDS)) if dice.random() < noise else symptom
        made.append(
            Labelled(
                text,
                {"type": "fault", "symptom": said, "fix": fix, "distributed": "yes" if "hang" in symptom else "no"},
            )
        )
    return made


@pytest.fixture(scope="module")
def trained() -> tuple[Model, list[Evaluation]]:
    return train(corpus())


def test_unseen_texts_are_told_apart_and_the_majority_is_beaten(trained: tuple[Model, list[Evaluation]]) -> None:
    _, evaluations = trained
    by_target = {one.target: one for one in evaluations}
    assert set(by_target) == {"type", "symptom", "fix", "distributed"}
    symptom = by_target["symptom"]
    assert symptom.accuracy > 0.9 > symptom.majority
    assert symptom.low <= symptom.kappa <= symptom.high
    assert (symptom.raters, by_target["distributed"].raters) == (0.87, None)
    assert by_target["type"].accuracy > by_target["type"].majority


def test_where_labels_are_chance_no_skill_is_claimed() -> None:
    dice = random.Random(5)
    texts = [
        Labelled(" ".join(dice.choices(FILLER, k=30)), {"type": dice.choice(["fault", "how-to question"])})
        for _ in range(120)
    ]
    _, (only,) = train(texts)
    assert only.low < 0.15
    assert only.miscalibration < 0.2, "and the probabilities say so"


def test_probabilities_are_as_often_right_as_they_say() -> None:
    _, evaluations = train(corpus(240, noise=0.4))
    symptom = next(one for one in evaluations if one.target == "symptom")
    assert symptom.miscalibration < 0.15
    assert symptom.accuracy < 0.9


def test_a_saved_model_guesses_the_same_and_holds_no_pickle(
    trained: tuple[Model, list[Evaluation]], tmp_path: Path
) -> None:
    model, _ = trained
    path = tmp_path / "model.npz"
    model.save(path)
    again = load_model(path)
    for one in corpus(20):
        before, after = model.guess(one.text), again.guess(one.text)
        assert {target: guess.label for target, guess in before.items()} == {
            target: guess.label for target, guess in after.items()
        }
        assert before["symptom"].probability == pytest.approx(after["symptom"].probability, abs=1e-4)
    with numpy.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
    assert 0 < model.guess("")["symptom"].probability < 1, "a text without a known word is a guess like any other"


def test_a_file_with_code_in_it_is_refused_and_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (open, (str(marker), "w"))

    path = tmp_path / "model.npz"
    for write in (
        lambda: path.write_bytes(pickle.dumps(Bomb())),
        lambda: numpy.savez(path, facts=numpy.array([Bomb()], dtype=object)),
        lambda: path.write_text("x"),
    ):
        write()
        with pytest.raises(StudyError, match=r"no model, or a damaged one"):
            load_model(path)
    assert not marker.exists()
    with pytest.raises(StudyError, match="Train a model with"):
        load_model(tmp_path / "nothing.npz")


def write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def test_bad_rows_are_counted_and_bad_files_said(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    base = {"title": "t", "body": "b", "type": "fault", "symptom": "perf.hang", "fix": "other", "distributed": "1"}
    write_csv(
        path,
        [
            base,
            base | {"symptom": "perf.hangs"},
            base | {"title": "", "body": ""},
            dict.fromkeys(base, "") | {"body": "x"},
        ],
    )
    found, problems = read_labelled(path)
    assert [one.labels["symptom"] for one in found] == ["perf.hang", None]
    assert found[0].labels["distributed"] == "yes"
    assert problems == {
        "an unknown symptom: 'perf.hangs'": 1,
        "rows without a text": 1,
        "rows without a usable label": 1,
    }
    path.write_text("a,b\n1,2\n")
    with pytest.raises(StudyError, match="no column `text`"):
        read_labelled(path)
    with pytest.raises(StudyError, match="too few labels"):
        train(found)
    with pytest.raises(StudyError, match=r"give a \.csv"):
        read_labelled(tmp_path / "x.docx")


def test_measures() -> None:
    assert macro_f1(["a", "a", "b"], ["a", "b", "b"]) == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert miscalibration([0.95] * 10, [True] * 9 + [False]) == pytest.approx(0.05)


def test_new_issues_are_labelled_and_given_labels_scored(tmp_path: Path) -> None:
    rows = [{"text": one.text, **{target: label or "" for target, label in one.labels.items()}} for one in corpus(100)]
    labelled, model, issues, out = tmp_path / "l.csv", tmp_path / "m.npz", tmp_path / "i.jsonl", tmp_path / "o.parquet"
    write_csv(labelled, rows)
    runner = CliRunner()
    done = runner.invoke(app, ["study", "train", str(labelled), "-o", str(model)])
    assert done.exit_code == 0, done.output
    assert "5-fold cross-validation" in done.output
    polars.DataFrame(
        {
            "key": ["a", "b"],
            "title": ["Help", "Something odd"],
            "body": ["cuda memory exhausted gigabytes allocate", "stuck forever waiting barrier collective frozen"],
            "symptom": ["build.import-error", "perf.hang"],
        }
    ).write_ndjson(issues)
    done = runner.invoke(app, ["study", "classify", str(issues), "-m", str(model), "-o", str(out)])
    assert done.exit_code == 0, done.output
    first, second = polars.read_parquet(out).to_dicts()
    assert (first["key"], first["symptom"], first["type"]) == ("a", "fail.out-of-memory", "fault")
    assert (second["symptom"], second["stage"]) == ("perf.hang", "training & evaluation")
    assert 0 < second["probability"] <= 1
    assert "symptom: 1 of 2 given labels right (50.0%)" in done.output


def test_without_a_model_it_says_how_to_train_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("issues.csv").write_text("text\nit hangs\n")
    done = CliRunner().invoke(app, ["study", "classify", "issues.csv"])
    assert done.exit_code == 2
    assert "phalanx study train" in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_only_given_labels_are_scored(trained: tuple[Model, list[Evaluation]]) -> None:
    model, _ = trained
    texts = ["memory cuda allocate exhausted gigabytes", "import module missing shared object"]
    found = [classify(text, model) for text in texts]
    assert score([{"symptom": "fail.out-of-memory"}, {"symptom": None}], found) == {"symptom": (1, 1)}
    assert score([{}, {}], found) == {}
