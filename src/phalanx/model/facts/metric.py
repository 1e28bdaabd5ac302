"""What the numbers that ranks report during training show."""

from phalanx.model.fact import FactType

_CHANGE = {"metric": "str", "first": "str", "last": "str"}

FACTS = (
    FactType("metric.vanishes", "The {metric} falls from {first} to {last} and stays there", _CHANGE),
    FactType("metric.grows", "The {metric} grows from {first} to {last}", _CHANGE),
    FactType("metric.slows", "Training slows down: {metric} goes from {first} to {last}", _CHANGE),
    FactType(
        "metric.constant",
        "The {metric} is {value} in every report, from the first to the last",
        {"metric": "str", "value": "str"},
    ),
    FactType(
        "metric.not-finite",
        "The {metric} is {value} to the end{since?, since {since}}{first?, first on {first}}",
        {"metric": "str", "value": "str", "since": "str", "first": "str", "grew": "str", "early": "str"},
    ),
    FactType(
        "metric.not-finite-first",
        "The {metric} is {value} to the end, since {since}, first on {ranks}",
        {"metric": "str", "value": "str", "since": "str", "first": "str", "grew": "str", "early": "str"},
    ),
    FactType(
        "metric.finite-again",
        "The {metric} was NaN or infinite and is finite again ({last})",
        {"metric": "str", "last": "str"},
    ),
    FactType(
        "metric.at-chance",
        "The model guesses: the {metric} goes from {first} to {last}, the accuracy is {accuracy}",
        {**_CHANGE, "accuracy": "str"},
    ),
    FactType(
        "metric.not-as-expected",
        "Every report is {times} times what the script expects: {own} instead of {expected}",
        {"times": "str", "own": "str", "expected": "str"},
    ),
    FactType(
        "metric.impossible",
        "The {metric} is {value}, which no model can have",
        {"metric": "str", "value": "str"},
    ),
    FactType(
        "metric.rank-outlier",
        "{ranks}: {metric} {own} at each step, the other ranks at most {others}",
        {"metric": "str", "own": "str", "others": "str"},
    ),
    FactType(
        "metric.ranks-differ",
        "Ranks report different values of the {metric} for the same step: {values}",
        {"metric": "str", "values": "names"},
    ),
    FactType(
        "metric.waits-for-data",
        "Each step waits {wait} for its data and computes for {compute}",
        {"wait": "str", "compute": "str"},
    ),
    FactType(
        "metric.sum-of-ranks",
        "The {metric} that ranks reduce is the sum of theirs: {reduced} where one rank has {own}, {times} times their mean",
        {"metric": "str", "reduced": "str", "own": "str", "times": "int"},
    ),
)
