"""Files of facts."""

from phalanx.sources.facts import is_facts, read_facts


def test_lines_that_are_no_facts_are_left_out() -> None:
    good = '{"fact": "metric.vanishes", "ranks": [2], "rank": 2, "fields": {"metric": "learning rate"}}'
    events = read_facts("facts.jsonl", f'{good}\nnot json\n{{"fact": "no.such"}}\n{good[:30]}')
    assert [(event.line, event.rank) for event in events] == [(1, 2)]
    assert events[0].fact is not None
    assert events[0].fact.ranks == (2,)


def test_known_by_name() -> None:
    assert is_facts("bundle/facts.jsonl")
    assert not is_facts("facts.log")
