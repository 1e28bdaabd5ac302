"""Facts are checked against their declaration, and survive a file."""

import pytest

from phalanx.model.fact import FactError
from phalanx.model.facts import fact_from_json, fact_types, make_fact, sentence_of

VALUES = {"metric": "learning rate", "first": "0.1", "last": "1e-12"}


def test_a_fact_comes_back_from_json() -> None:
    fact = make_fact("metric.vanishes", VALUES, ranks=(1, 2), hosts=("a",), source="metric")
    assert fact_from_json(fact.to_json(), "metric") == fact


def test_its_sentence_is_filled_from_the_fields() -> None:
    assert "learning rate" in sentence_of(make_fact("metric.vanishes", VALUES))


@pytest.mark.parametrize(
    ("fact_id", "fields", "said"),
    [
        ("metric.unheard-of", {}, "no fact"),
        ("metric.vanishes", {"colour": "red"}, "no field 'colour'"),
        ("metric.vanishes", {"metric": 3}, "must be str"),
    ],
)
def test_what_is_not_declared_is_refused(fact_id: str, fields: dict[str, object], said: str) -> None:
    with pytest.raises(FactError, match=said):
        make_fact(fact_id, fields)


@pytest.mark.parametrize(
    "item", [None, [], {"fact": 3}, {"fact": "no.such"}, {"fact": "metric.vanishes", "ranks": "2"}]
)
def test_bad_input_is_no_fact(item: object) -> None:
    assert fact_from_json(item) is None


def test_every_text_names_only_its_own_fields() -> None:
    import re

    for declared in fact_types().values():
        named = set(re.findall(r"\{(\w+)", declared.text))
        assert named <= declared.fields.keys() | {"ranks", "hosts"}, declared.id
