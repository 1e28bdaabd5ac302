"""What the lines that ranks print show beside their numbers: when they end, what is compiled again."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "compile.repeated",
        "{function} is compiled {times} times while the job trains",
        {"function": "str", "times": "int"},
    ),
    FactType(
        "compile.retraced",
        "{function} is traced again, and every step takes as long as the first",
        {"function": "str"},
    ),
    FactType(
        "output.quiet-before-end",
        "No step was reported in the last {seconds} s before the job was ended from outside; before that one came every {interval} s or sooner",
        {"seconds": "int", "interval": "int"},
    ),
    FactType(
        "output.rank-behind",
        "The last report of {ranks} is {own}, that of all other ranks {common}",
        {"own": "str", "common": "str"},
    ),
    FactType(
        "output.repeats",
        "{ranks} alone repeats itself at its end, {times} times or more: {said}",
        {"times": "int", "said": "str"},
    ),
)
