"""The probing itself: everybody listens, everybody calls everybody, then sizes, latency, loss and bandwidth are measured in rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.preflight.network.nodes import Node, family_of
from phalanx.preflight.network.rounds import FEW, rounds, without_collisions
from phalanx.preflight.network.talks import Called, Talk, called_of
from phalanx.preflight.tf_cluster import Task

SPREAD = (0.1, 0.5, 0.9)
LARGE = 24 << 10  # more than a jumbo frame each way, in every call
IDLE_S = 1.3
_SIZES = (8948, 4000, 1460, 1440, 1410, 1400, 1380, 1360, 1340, 1300, 1240, 1180, 1000, 500)
_MOST_SIZED = 6
_WAITING_PERCENT = 30.0  # of the last ten seconds in which something waited for a processor
_MOST_AGAIN = 3  # rounds
_DRIPS = 250  # one in a hundred lost shows with 19 of 20


@dataclass(slots=True)
class Survey:
    """All that was seen."""

    nodes: Sequence[Node]
    port: int | None = None  # the store's
    tasks: Mapping[int, Sequence[Task]] = field(default_factory=dict)  # of TensorFlow, by the node that has their ports
    only_gloo: bool = True  # nothing tells of a library that calls in another order
    listening: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    calls: list[Called] = field(default_factory=list)
    half_open: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)
    sizes: dict[tuple[int, int], dict[int, str]] = field(default_factory=dict)  # pair → segment → how far it came
    speeds: dict[tuple[int, int], list[Mapping[str, Any]]] = field(default_factory=dict)
    ways: dict[tuple[int, int], Mapping[str, Any]] = field(
        default_factory=dict
    )  # by the kernel of the first, to the second
    idle: list[Mapping[str, Any]] = field(default_factory=list)
    idle_s: float = 0.0
    _mesh: dict[tuple[int, int], Called] = field(default_factory=dict)
    _counted: int = 0

    def mesh(self) -> dict[tuple[int, int], Called]:
        """The calls of every node to every other, at the address that the job would use; made once, for there may be a million."""
        if len(self.calls) != self._counted:
            self._mesh = {(one.source, one.target): one for one in self.calls if one.kind == "mesh"}
            self._counted = len(self.calls)
        return self._mesh

    def of(self, kind: str) -> list[Called]:
        """The calls of another kind."""
        return [one for one in self.calls if one.kind == kind]

    def busy(self) -> dict[int, str]:
        """Hosts with more to do than processors, which look slow, and how much."""
        found = {}
        for number, told in self.listening.items():
            load = told.get("load", {})
            average, cores = float(load.get("average") or 0.0), int(load.get("cores") or 1)
            if average > cores or float(load.get("waiting") or 0.0) > _WAITING_PERCENT:
                found[number] = f"load {average:.0f} on {cores} cores"
        return found

    def open_port(self, number: int, family: int, given: int | None = None) -> int | None:
        """A port on which a node listens for a family: the given one, else one that the kernel chose."""
        for one in self.listening.get(number, {}).get("ports", ()):
            wanted = one.get("kind") == "any" if given is None else one.get("given") and one["port"] == given
            if wanted and "errno" not in one and one["family"] == f"ipv{family}":
                return int(one["port"])
        return None


def listen(talk: Talk, survey: Survey) -> None:
    """Everybody listens: on the store's port too, since a firewall often tells it from the high ones."""
    store = [survey.port] if survey.port else []
    args = {}
    for node in survey.nodes:
        own = [task.port for task in survey.tasks.get(node.number, ())]
        args[node.number] = {"ports": list(dict.fromkeys([*store, *own])), "spread": list(SPREAD)}
    for number, told in talk.ask("listen", args, 5.0).items():
        survey.listening[number] = told[0]


def plan_calls(survey: Survey, store: Mapping[int, tuple[str, int, str]]) -> dict[int, dict[str, list[Any]]]:
    """Whom each node calls: all others; the store by the very name and port that the job has; of two neighbours other ports and addresses."""
    nodes = [node for node in survey.nodes if node.number in survey.listening]
    ports = {node.number: survey.open_port(node.number, family_of(node.address)) for node in nodes}
    plan: dict[int, dict[str, list[Any]]] = {}
    for place, node in enumerate(nodes):
        targets: list[dict[str, Any]] = []
        mesh: list[list[Any]] = []
        if node.number in store:
            address, port, kind = store[node.number]
            targets.append({"id": [node.number, -1, kind], "address": address, "port": port})
        for step in range(1, len(nodes)):  # everybody begins with somebody else
            other = nodes[(place + step) % len(nodes)]
            if ports[other.number] is not None:
                mesh.append([other.number, other.address, ports[other.number], int(_is_partner(step, len(nodes)))])
            if step <= 2 or len(nodes) - step == 1 or len(nodes) <= FEW:
                targets += _closer_look(survey, node, other)
                if (there := ports[other.number]) is not None:
                    targets += _flows(node.number, other.number, other.address, there, len(nodes))
        plan[node.number] = {"targets": targets, "mesh": mesh}
    return plan


def ask_ways(talk: Talk, survey: Survey) -> None:
    """Where a call failed: which way the kernels at both ends would send."""
    failed = {pair for pair, one in survey.mesh().items() if not one.answered}
    pairs: dict[int, list[int]] = {}
    for source, target in sorted(failed | {(target, source) for source, target in failed}):
        if family_of(survey.nodes[source].address) == family_of(survey.nodes[target].address):
            pairs.setdefault(source, []).append(target)
    args = {
        number: {"pairs": [[survey.nodes[number].address, survey.nodes[other].address] for other in others]}
        for number, others in pairs.items()
    }
    for number, told in talk.ask("routes", args, 2.0).items():
        for other, way in zip(pairs[number], told, strict=False):
            survey.ways[(number, other)] = way


def _is_partner(step: int, count: int) -> bool:
    """Idle connections are kept to partners at distances 1, 2, 4, …, not to all."""
    return step & (step - 1) == 0 or count <= 4


def _flows(source: int, target: int, address: str, port: int, count: int) -> list[dict[str, Any]]:
    """Single calls for one pair, more of them where there are few pairs: one of several paths may be dead."""
    number = 8 if count <= FEW // 2 else 4 if count <= FEW else 1
    one = {"id": [source, target, "flow"], "address": address, "port": port, "once": True, "small": True}
    return [dict(one) for _ in range(number)]


def _closer_look(survey: Survey, node: Node, other: Node) -> list[dict[str, Any]]:
    found = []
    family = family_of(other.address)
    if survey.port and survey.open_port(other.number, family, survey.port) is not None:
        found.append({"id": [node.number, other.number, "given"], "address": other.address, "port": survey.port})
    found += [
        {"id": [node.number, other.number, "task"], "address": task.host, "port": task.port}
        for task in survey.tasks.get(other.number, ())
    ]
    listening = survey.listening[other.number].get("ports", ())
    spread = [one["port"] for one in listening if one.get("kind") == "spread" and one["family"] == f"ipv{family}"]
    found += [{"id": [node.number, other.number, "spread"], "address": other.address, "port": port} for port in spread]
    for address in other.addresses[1:]:
        port = survey.open_port(other.number, family_of(address))
        if port is not None:
            found.append({"id": [node.number, other.number, "other"], "address": address, "port": port})
    return found


def call_all(talk: Talk, survey: Survey, plan: Mapping[int, Mapping[str, Any]], timeout: float) -> None:
    """All calls at once: one time-out, whatever the number of hosts."""
    args = {number: {**targets, "me": number, "timeout": timeout, "large": LARGE} for number, targets in plan.items()}
    places = places_of(survey)
    for number, told in talk.ask("connect", args, timeout * 2 + 6.0).items():
        for one in told:
            if "fine" in one:
                survey.calls += [fine_call(places, number, row) for row in one["fine"]]
            else:
                survey.calls.append(called_of(one))
    unheard = [one for one in survey.calls if one.outcome == "silent"]
    silent = {one.target for one in unheard if one.target >= 0}
    silent |= {node.number for node in survey.nodes if node.stores and any(one.kind == "store" for one in unheard)}
    for number, told in talk.ask("half-open", {number: {} for number in silent}, 2.0).items():
        survey.half_open[number] = list(told[0].get("half_open", ()))


def places_of(survey: Survey) -> dict[int, tuple[str, int]]:
    """Where each node is called."""
    return {
        node.number: (node.address, survey.open_port(node.number, family_of(node.address)) or 0)
        for node in survey.nodes
    }


def fine_call(places: Mapping[int, tuple[str, int]], source: int, row: Sequence[Any]) -> Called:
    """A call of which there is nothing to say, as the agent writes it."""
    target, peer, rtt, resent, attempts = row
    address, port = places[target]
    return Called(source, target, "mesh", address, port, "ok", peer=peer, rtt_us=rtt, resent=resent, attempts=attempts)


def find_sizes(talk: Talk, survey: Survey, timeout: float) -> None:
    """For pairs on which small messages pass and large ones do not: up to which size they pass. All sizes at once."""
    stalled = [pair for pair, one in survey.mesh().items() if one.answered and one.large != "ok"]
    chosen: dict[int, list[tuple[int, int]]] = {}
    for pair in stalled:
        chosen.setdefault(pair[0], []).append(pair)
    few = [pair for pairs in chosen.values() for pair in pairs[:2]][:_MOST_SIZED]
    args: dict[int, dict[str, Any]] = {}
    for source, target in few:
        node = survey.nodes[target]
        port = survey.open_port(target, family_of(node.address))
        for size in _SIZES:
            entry = {"id": [source, target, f"size {size}"], "address": node.address, "port": port, "maxseg": size}
            args.setdefault(source, {"targets": [], "timeout": timeout, "large": LARGE})["targets"].append(entry)
    for told in talk.ask("connect", args, timeout * 2 + 6.0).values():
        for one in (called_of(row) for row in told if "fine" not in row):
            way = one.large if one.answered else one.outcome
            survey.sizes.setdefault((one.source, one.target), {})[int(one.kind.split()[1])] = way


def measure(talk: Talk, survey: Survey, again: Callable[[Survey], Mapping[tuple[int, int], Mapping[str, Any]]]) -> None:
    """Latency, loss and bandwidth in rounds; then what looks bad once more, with nothing else going on."""
    mesh = survey.mesh()
    usable = {pair for pair, one in mesh.items() if one.answered and one.large == "ok"}
    numbers = sorted({number for pair in usable for number in pair})
    drips = _DRIPS if len(numbers) <= FEW else _DRIPS // 2
    for pairs in rounds(len(numbers)):
        wanted = [(numbers[one], numbers[other]) for one, other in pairs]
        _measure_round(talk, survey, {pair: {"drips": drips} for pair in wanted if pair in usable})
    suspected = again(survey)
    for pairs in without_collisions(list(suspected))[:_MOST_AGAIN]:
        _measure_round(talk, survey, {pair: suspected[pair] for pair in pairs})


def _measure_round(talk: Talk, survey: Survey, pairs: Mapping[tuple[int, int], Mapping[str, Any]]) -> None:
    args = {}
    for (source, target), how in pairs.items():
        node = survey.nodes[target]
        port = survey.open_port(target, family_of(node.address))
        args[source] = {**how, "targets": [{"id": [source, target], "address": node.address, "port": port}]}
    for told in talk.ask("measure", args, 6.0).values():
        for one in told:
            source, target = one["id"]
            survey.speeds.setdefault((source, target), []).append(one)


def wake_idle(talk: Talk, survey: Survey, since: float) -> None:
    """Say a word on the connections that were kept since the calls."""
    pause = since + IDLE_S - time.monotonic()
    if pause > 0:
        time.sleep(pause)
    survey.idle_s = time.monotonic() - since
    for told in talk.ask("idle", {node.number: {} for node in survey.nodes}, 2.0).values():
        survey.idle += told
    survey.idle_s = min((float(one["idle"]) for one in survey.idle), default=survey.idle_s)


def close(talk: Talk, survey: Survey) -> None:
    """Close every socket."""
    talk.ask("close", {node.number: {} for node in survey.nodes}, 2.0)
    talk.close()
