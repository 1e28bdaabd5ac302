"""What the user's own source shows beside where ranks were when the job failed."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "source.called-by-some",
        "{ranks} alone {verb} {call}{function? in {function}} ({place}, under `{condition}`)",
        {
            "verb": "str",
            "call": "str",
            "function": "str",
            "place": "str",
            "condition": "str",
            "others_at": "str",
            "cause": "str",
            "ended": "str",
            "plain": "str",
            "gathers": "str",
            "library": "str",
        },
    ),
    FactType(
        "source.raised-inside",
        "{ranks} raised {error} at {place}{function? in {function}()}, within a graph",
        {"error": "str", "place": "str", "function": "str", "source": "str", "data": "bool"},
    ),
)
