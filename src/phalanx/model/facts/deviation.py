"""What the accused did instead of coming to where the others waited, told once it is known whom to accuse."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "deviation.ran-out-of-batches",
        "{ranks} left the loop over its data{step? after step {step}} while the others were still in it",
        {
            "step": "int",  # its last
            "reported": "int",  # the last that it told of, where not every step is told
            "loop": "str",  # the file and line of the loop, where the source is at hand
            "skip": "str",  # where a pass of the loop can be skipped
        },
    ),
    FactType(
        "deviation.left-early",
        "{ranks} had ended by then, without an error",
        {"cause": "str", "as_many_steps": "bool"},
    ),
    FactType(
        "deviation.elsewhere",
        "{ranks} was at {place}, the others at {others_at}",
        {"cause": "str", "place": "str", "others_at": "str", "busy_at": "str", "order": "bool", "new_group": "bool"},
    ),
    FactType(
        "deviation.states-otherwise",
        "{ranks} states {what} {own} where all others state {common}",
        {"cause": "str", "what": "str", "own": "str", "common": "str"},
    ),
    FactType(
        "deviation.never-started",
        "No output of {ranks}, and {joined} of {size} processes came",
        {"joined": "int", "size": "int", "seconds": "int"},
    ),
    FactType(
        "deviation.other-store",
        "{ranks} looked for the store at {address} while {joined} of {size} processes met",
        {"address": "str", "joined": "int", "size": "int"},
    ),
    FactType("deviation.same-rank-twice", "{ranks} waits for its own address, so two processes have its rank"),
)
