"""What the supervisor and the watch know of single ranks: how one died, which is slow."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "rank.died",
        "{child?A child process of }{ranks} died: {why}",
        {
            "cause": "str",
            "signal": "str",
            "why": "str",
            "place": "str",
            "library": "str",
            "child": "bool",
            "node": "str",
        },
    ),
    FactType(
        "rank.limited",
        "{ranks} may use {limit} of address space (ulimit -v), and had taken {peak}",
        {"limit": "str", "peak": "str"},
    ),
    FactType(
        "rank.lacks-name",
        "{ranks} imported {module} from {file}, which has no {name}",
        {"module": "str", "file": "str", "name": "str"},
    ),
    FactType(
        "rank.slower",
        "{ranks} is steadily slower: its part of a step takes about {factor} times as long as that of the others, which wait {share} of their time for it; {why}{place? ({place})}",
        {"factor": "str", "share": "str", "why": "str", "what": "str", "place": "str"},
    ),
)
