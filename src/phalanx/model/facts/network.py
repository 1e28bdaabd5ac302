"""What the kernel's tables of connections, and the silence of hosts, show of the network."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "network.no-answer",
        "Rank {rank} gets no answer from {address}, {times} asked again",
        {"rank": "int", "address": "str", "times": "str"},
    ),
    FactType(
        "network.not-acknowledged",
        "{bytes} bytes from rank {sender} to {to} ({address}) are not acknowledged, {times} sent again: the path is broken",
        {"bytes": "int", "sender": "int", "to": "str", "address": "str", "times": "str"},
    ),
    FactType("network.host-lost", "The host {host} ({ranks}) is off or cut off: {why}", {"host": "str", "why": "str"}),
    FactType(
        "network.path-broken",
        "The path between {one} ({ranks_one}) and {other} ({ranks_other}) is broken: what is sent between them is not acknowledged",
        {"one": "str", "ranks_one": "ranks", "other": "str", "ranks_other": "ranks"},
    ),
)
