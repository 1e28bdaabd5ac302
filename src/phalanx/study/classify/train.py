"""Trains the text model from labelled texts and says by cross-validation how good it is, beside the majority and the raters."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.study.classify.labelled import TARGETS, Labelled
from phalanx.study.classify.model import MOST_WORDS, Head, Model, tokens, weigh
from phalanx.study.errors import StudyError, need
from phalanx.study.reproduce.kappa import agree

FOLDS = 5
_FEWEST = 20
_TEMPERATURES = tuple(0.3 * 1.15**step for step in range(24))
# Cohen's kappa of the study's two raters over all rounds, folded labels: `phalanx study reproduce`, table agreement.
RATERS = {"type": 0.95, "symptom": 0.87, "fix": 0.82}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a target did on texts that were not learnt from. `miscalibration` is the mean gap between said and true."""

    target: str
    texts: int
    classes: int
    accuracy: float
    majority: float
    macro_f1: float
    kappa: float
    low: float
    high: float
    raters: float | None
    miscalibration: float


def train(labelled: Sequence[Labelled], notes: Mapping[str, Any] | None = None) -> tuple[Model, list[Evaluation]]:
    """A model of every target with enough labels, and its evaluation."""
    need("sklearn", "training a text model")
    vocabulary, idf = _learn_words([one.text for one in labelled])
    heads, evaluations = {}, []
    for target in TARGETS:
        mine = [(one.text, str(one.labels[target])) for one in labelled if one.labels.get(target)]
        if len(mine) < _FEWEST or len({label for _, label in mine}) < 2:
            continue
        texts, truth = [text for text, _ in mine], [label for _, label in mine]
        scores, classes = _scores_of_unseen(texts, truth)
        temperature = _fit_temperature(scores, classes, truth)
        evaluations.append(_evaluate(target, scores, classes, truth, temperature))
        fitted = _fit(_matrix(texts, vocabulary, idf), truth)
        weights, bias = _both_sides(fitted)
        heads[target] = Head(tuple(str(name) for name in fitted.classes_), weights, bias, temperature)
    if not heads:
        raise StudyError(
            f"too few labels to learn from: a target needs {_FEWEST} texts with at least two different labels."
        )
    report = {
        one.target: {"texts": one.texts, "accuracy": one.accuracy, "majority": one.majority, "kappa": one.kappa}
        for one in evaluations
    }
    return Model(vocabulary, idf, heads, {"evaluation": report, **(notes or {})}), evaluations


def _learn_words(texts: Sequence[str]) -> tuple[dict[str, int], Any]:
    numpy = need("numpy", "training a text model")
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update(set(tokens(text)))
    # A word of one text alone cannot help with another.
    kept = sorted(word for word, times in seen.most_common(MOST_WORDS) if times >= 2)
    idf = numpy.array([math.log((1 + len(texts)) / (1 + seen[word])) + 1 for word in kept], dtype="float32")
    return {word: index for index, word in enumerate(kept)}, idf


def _matrix(texts: Sequence[str], vocabulary: Mapping[str, int], idf: Any) -> Any:
    sparse = need("scipy.sparse", "training a text model")
    pointers, columns, values = [0], [], []
    for text in texts:
        where, what = weigh(text, vocabulary, idf)
        columns += where
        values += what
        pointers.append(len(columns))
    return sparse.csr_matrix((values, columns, pointers), shape=(len(texts), len(vocabulary)))


def _fit(matrix: Any, truth: Sequence[str]) -> Any:
    linear = need("sklearn.linear_model", "training a text model")
    return linear.LogisticRegression(C=10.0, max_iter=150, tol=1e-3).fit(matrix, truth)


def _both_sides(fitted: Any) -> tuple[Any, Any]:
    """Of two classes scikit-learn keeps one side; a softmax wants both."""
    numpy = need("numpy", "training a text model")
    if len(fitted.classes_) > 2:
        return fitted.coef_, fitted.intercept_
    return numpy.vstack([-fitted.coef_[0], fitted.coef_[0]]) / 2, numpy.array(
        [-fitted.intercept_[0], fitted.intercept_[0]]
    ) / 2


def _scores_of_unseen(texts: Sequence[str], truth: Sequence[str]) -> tuple[Any, list[str]]:
    """Scores for every text from a model that did not see it: words are learnt anew in every fold, too."""
    numpy = need("numpy", "training a text model")
    selection = need("sklearn.model_selection", "training a text model")
    classes = sorted(set(truth))
    scores = numpy.full((len(texts), len(classes)), -20.0)
    for seen, unseen in selection.KFold(FOLDS, shuffle=True, random_state=0).split(texts):
        labels = [truth[index] for index in seen]
        if len(set(labels)) < 2:
            scores[numpy.ix_(unseen, [classes.index(labels[0])])] = 0.0
            continue
        vocabulary, idf = _learn_words([texts[index] for index in seen])
        fitted = _fit(_matrix([texts[index] for index in seen], vocabulary, idf), labels)
        weights, bias = _both_sides(fitted)
        found = _matrix([texts[index] for index in unseen], vocabulary, idf) @ weights.T + bias
        places = [classes.index(str(name)) for name in fitted.classes_]
        scores[numpy.ix_(unseen, places)] = found
    return scores, classes


def _shares(scores: Any, temperature: float) -> Any:
    numpy = need("numpy", "training a text model")
    scaled = scores / temperature
    raised = numpy.exp(scaled - scaled.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _fit_temperature(scores: Any, classes: list[str], truth: Sequence[str]) -> float:
    """The temperature under which the truth is least surprising, over texts that were not learnt from."""
    numpy = need("numpy", "training a text model")
    places = numpy.array([classes.index(label) for label in truth])

    def surprise(temperature: float) -> float:
        shares = _shares(scores, temperature)[numpy.arange(len(places)), places]
        return float(-numpy.log(numpy.maximum(shares, 1e-9)).mean())

    return min(_TEMPERATURES, key=surprise)


def _evaluate(target: str, scores: Any, classes: list[str], truth: Sequence[str], temperature: float) -> Evaluation:
    shares = _shares(scores, temperature)
    guessed = [classes[int(index)] for index in shares.argmax(axis=1)]
    sure = [float(value) for value in shares.max(axis=1)]
    right = [guess == label for guess, label in zip(guessed, truth, strict=True)]
    agreement = agree(list(zip(guessed, truth, strict=True)))
    assert agreement is not None
    return Evaluation(
        target=target,
        texts=len(truth),
        classes=len(classes),
        accuracy=sum(right) / len(right),
        majority=Counter(truth).most_common(1)[0][1] / len(truth),
        macro_f1=macro_f1(guessed, truth),
        kappa=agreement.kappa,
        low=agreement.low,
        high=agreement.high,
        raters=RATERS.get(target),
        miscalibration=miscalibration(sure, right),
    )


def macro_f1(guessed: Sequence[str], truth: Sequence[str]) -> float:
    """The mean F1 of the classes, rare ones counting as much as frequent ones."""
    values = []
    for name in set(truth):
        hits = sum(guess == label == name for guess, label in zip(guessed, truth, strict=True))
        values.append(2 * hits / (sum(guess == name for guess in guessed) + sum(label == name for label in truth)))
    return sum(values) / len(values)


def miscalibration(sure: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """The gap between how sure and how right, over ten classes of sureness, weighed by how many texts are in each."""
    total = 0.0
    for index in range(bins):
        mine = [place for place, value in enumerate(sure) if min(int(value * bins), bins - 1) == index]
        if mine:
            total += abs(sum(sure[place] for place in mine) - sum(right[place] for place in mine))
    return total / len(sure)
