"""What the numbers that ranks report during training show."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "metric.vanishes",
        "The {metric} falls from {first} to {last} and stays there",
        {"metric": "str", "first": "str", "last": "str"},
    ),
)
