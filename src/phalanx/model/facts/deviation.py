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
        },
    ),
)
