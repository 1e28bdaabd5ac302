"""The text model: words and pairs of words, weighed by logistic regressions. Learnt with scikit-learn, kept as plain arrays.

The file is a NumPy archive of numbers and of JSON as bytes: loading it runs no code. To use it needs NumPy alone.
"""

import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from phalanx.study.errors import StudyError, need

FORMAT = "phalanx.text-model/1"
_TOKEN = re.compile(r"[a-z_][a-z_0-9.]*[a-z_0-9]|[a-z]", re.IGNORECASE)
_LONGEST_TEXT = 40_000  # beginnings tell most, and pasted logs have no end
MOST_WORDS = 10_000


@dataclass(frozen=True, slots=True)
class Guess:
    """A label and the probability that it is right, as calibrated."""

    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class Head:
    """What is learnt for one target. `temperature` divides the scores, so that probabilities are as often right as they say."""

    classes: tuple[str, ...]
    weights: Any  # classes × words
    bias: Any
    temperature: float


@dataclass(frozen=True, slots=True)
class Model:
    """A trained model; `notes` say what it was trained on and how well it did."""

    vocabulary: Mapping[str, int]
    idf: Any
    heads: Mapping[str, Head]
    notes: Mapping[str, Any]

    def guess(self, text: str) -> dict[str, Guess]:
        """The most probable label of every target."""
        numpy = need("numpy", "using a text model")
        columns, values = weigh(text, self.vocabulary, self.idf)
        guesses = {}
        for target, head in self.heads.items():
            scores = (head.weights[:, columns] @ numpy.asarray(values) + head.bias) / head.temperature
            shares = numpy.exp(scores - scores.max())
            shares /= shares.sum()
            best = int(shares.argmax())
            guesses[target] = Guess(head.classes[best], float(shares[best]))
        return guesses

    def save(self, path: Path) -> None:
        """Write the file."""
        numpy = need("numpy", "writing a text model")
        words = sorted(self.vocabulary, key=lambda word: self.vocabulary[word])
        facts = {
            "format": FORMAT,
            "words": words,
            "notes": self.notes,
            "heads": {
                target: {"classes": head.classes, "temperature": head.temperature}
                for target, head in self.heads.items()
            },
        }
        arrays = {
            "facts": numpy.frombuffer(json.dumps(facts).encode(), dtype=numpy.uint8),
            "idf": self.idf.astype("float32"),
        }
        for target, head in self.heads.items():
            arrays |= {
                f"{target}.weights": head.weights.astype("float32"),
                f"{target}.bias": head.bias.astype("float32"),
            }
        partial = path.with_name(path.name + ".partial")
        try:
            with partial.open("wb") as file:
                numpy.savez_compressed(file, **arrays)
            partial.replace(path)
        except OSError as error:
            raise StudyError(f"{path}: cannot be written ({error.strerror}).") from error


def load_model(path: Path) -> Model:
    """Read a model file; nothing in it is executed."""
    numpy = need("numpy", "using a text model")
    try:
        with numpy.load(path, allow_pickle=False) as arrays:
            facts = json.loads(bytes(arrays["facts"]))
            if facts["format"] != FORMAT:
                raise StudyError(
                    f"{path}: a model of the format {facts['format']!r}; this version reads {FORMAT}. Train it again."
                )
            heads = {
                target: Head(tuple(head["classes"]), arrays[f"{target}.weights"], arrays[f"{target}.bias"], float(head["temperature"]))
                for target, head in facts["heads"].items()
            }  # fmt: skip
            vocabulary = {word: index for index, word in enumerate(facts["words"])}
            return Model(vocabulary, arrays["idf"], heads, facts["notes"])
    except StudyError:
        raise
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error}). Train a model with `phalanx study train`.") from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        # what NumPy says of a foreign file (that it may be a pickle, to be loaded unsafely) helps nobody
        raise StudyError(
            f"{path}: no model, or a damaged one. `phalanx study train LABELS --output {path}` makes one."
        ) from error


def tokens(text: str) -> list[str]:
    """Words, names of calls and exceptions, and pairs of neighbours."""
    words = [word.lower() for word in _TOKEN.findall(text[:_LONGEST_TEXT])]
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def weigh(text: str, vocabulary: Mapping[str, int], idf: Sequence[float]) -> tuple[list[int], list[float]]:
    """The text as a sparse vector of length 1: columns and their values."""
    counts = Counter(vocabulary[token] for token in tokens(text) if token in vocabulary)
    columns = sorted(counts)
    values = [(1 + math.log(counts[column])) * float(idf[column]) for column in columns]
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    return columns, [value / length for value in values]
