"""How processes ended, where more than their status is known."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "exit.killed-by-somebody",
        "{ranks} was killed by {signal}; the kernel's log and the control group show no lack of memory",
        {"signal": "str"},
    ),
)
