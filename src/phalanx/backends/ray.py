"""Ray: one actor on each node of a placement group starts the agent there.

    train.on("ray", nodes=2)      phalanx run -n 8 --on ray --with address=auto train.py

The actors are named after the job, so that Ray's dashboard and `ray list actors` show it; what an agent says is in their
logs there. A node that Ray loses is lost to the job too; the driver's retries ask Ray for a new placement group.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.backends.backend import (
    BackendError,
    Command,
    Plan,
    Reach,
    Request,
    Started,
    State,
    Streams,
    fewer_nodes,
    spread,
)
from phalanx.backends.words import last_words

NAME = "ray"
REACH = Reach.NETWORK
OPTIONS: Mapping[str, str] = {
    "address": "of the cluster: host:port, auto (unless said: the one of this machine, or RAY_ADDRESS), ray://host:10001 is not taken",
    "nodes": "how many nodes share the workers; 1 unless said",
    "cpus_per_worker": "processors that Ray sets aside for each worker; 1 unless said",
    "resources": 'more that each node must have, as "name:amount,…"',
}
_connections = 0
_lock = threading.Lock()


def plan(request: Request) -> Plan:
    """What Ray is asked to set aside, node by node."""
    layout = spread(request.workers, request.count("nodes", 1))
    address = request.option("address", "auto")
    if address.startswith("ray://"):
        raise BackendError(
            "Ray Client (ray://) hides the nodes: run this on a machine of the cluster, or use `ray job submit`"
        )
    bundles = [_bundle(request, workers) for workers in layout]
    notes = tuple(
        f"node {node}: an actor with {', '.join(f'{amount:g} {name}' for name, amount in bundle.items())}"
        for node, bundle in enumerate(bundles)
    )
    spreads = "each on a node of its own" if len(layout) > 1 else "on one node"
    purpose = f"the agents' command; a placement group of Ray at {address} starts it, {spreads}"
    return Plan(layout, (Command(request.agent, purpose, request.environment),), notes=notes)


def without(options: Mapping[str, object], nodes: tuple[str, ...]) -> Mapping[str, object]:
    """So many nodes fewer; which they are is the cluster's affair."""
    return fewer_nodes(options, len(nodes))


def start(plan: Plan, request: Request) -> Started:
    """Connect to the cluster and ask for a placement group. Raises BackendError."""
    ray = _connect(request.option("address", "auto"))
    try:
        return RayJob(ray, plan, request)
    except BaseException:
        _disconnect(ray)
        raise


class RayJob:
    """Waits for its placement group, then for its actors."""

    def __init__(self, ray: Any, plan: Plan, request: Request) -> None:
        self._ray = ray
        self._plan = plan
        self._request = request
        bundles = [_bundle(request, workers) for workers in plan.layout]
        _refuse_impossible(ray, bundles)
        strategy = "STRICT_SPREAD" if len(bundles) > 1 else "PACK"
        self._group = ray.util.placement_group(bundles, strategy=strategy, name=f"phalanx-{request.name}")
        self._is_ready = self._group.ready()
        self._actors: list[Any] = []
        self._runs: list[Any] = []
        self._cancels = 0
        self._said: dict[str, str] = {}

    def streams(self) -> Mapping[int, Streams]:
        """None: agents connect by themselves."""
        return {}

    def follow(self) -> tuple[State, str]:
        """Queued until Ray has room; failed as soon as one agent ended badly, or Ray itself has."""
        try:
            return self._look()
        except (self._ray.exceptions.RayError, ConnectionError, RuntimeError) as error:
            return State.FAILED, f"Ray: {(str(error).strip().splitlines() or [type(error).__name__])[0]}"

    def _look(self) -> tuple[State, str]:
        ray = self._ray
        if self._cancels and not self._actors:
            return State.CANCELLED, ""
        if not self._actors:
            if not ray.wait([self._is_ready], timeout=0)[0]:
                return State.QUEUED, "Ray has no room for it yet"
            self._seat()
        done, running = ray.wait(self._runs, num_returns=len(self._runs), timeout=0)
        for run in done:
            node = self._runs.index(run)
            try:
                code, words = ray.get(run)
            except ray.exceptions.RayError as error:
                code, words = 1, str(error).strip().splitlines()[0]
            self._said[f"node{node}"] = words
            if code:
                last = words.splitlines()[-1:]
                reason = f"node {node}: exit status {code}" + (f": {last[0]}" if last else "")
                return State.CANCELLED if self._cancels else State.FAILED, reason
        return (State.RUNNING if running else State.DONE), ""

    def _seat(self) -> None:
        """One actor in each bundle."""
        strategy = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        remote = self._ray.remote(AgentActor)
        for node, workers in enumerate(self._plan.layout):
            bundle = _bundle(self._request, workers)
            more = {name: amount for name, amount in bundle.items() if name not in ("CPU", "GPU")}
            actor = remote.options(
                num_cpus=bundle["CPU"],
                num_gpus=bundle.get("GPU", 0),
                resources=more,
                max_concurrency=2,  # so that it can be asked to stop while it waits
                name=f"phalanx-{self._request.name}-{os.getpid()}-{id(self):x}-node{node}",
                scheduling_strategy=strategy(placement_group=self._group, placement_group_bundle_index=node),
            ).remote()
            self._actors.append(actor)
            environment = {**self._request.environment, "PHALANX_NODE": str(node), "PHALANX_TOKEN": self._request.token}
            environment.pop("PHALANX_TOKEN_FILE", None)  # the nodes of a Ray cluster need not share a file system
            self._runs.append(actor.run.remote(list(self._request.agent), environment))

    def cancel(self) -> None:
        """The agents are asked to end, which end their ranks; the second time Ray ends the actors."""
        self._cancels += 1
        for actor in self._actors:
            with contextlib.suppress(Exception):  # an actor that is gone needs no end
                if self._cancels > 1:
                    self._ray.kill(actor)
                else:
                    actor.stop.remote()

    def collect(self) -> Mapping[str, str]:
        """What the agents said. The actors and the placement group are given back."""
        with contextlib.suppress(Exception):  # the cluster itself may be gone
            self.follow()
            for actor in self._actors:
                self._ray.kill(actor)
            self._ray.util.remove_placement_group(self._group)
        _disconnect(self._ray)
        return {node: words for node, words in self._said.items() if words}


class AgentActor:
    """Runs on a node, in a worker process of Ray's."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self, argv: list[str], environment: dict[str, str]) -> tuple[int, str]:
        """The agent from beginning to end: its exit status and last words."""
        with tempfile.NamedTemporaryFile(prefix="phalanx-agent-") as words:
            if self._is_stopped:  # before it began: then it must not begin
                return 143, ""
            self._process = subprocess.Popen(
                argv, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=words, stderr=words
            )
            code = self._process.wait()
            said = last_words(Path(words.name))
            print(said, flush=True)  # for Ray's own logs
            return code, said

    def stop(self) -> None:
        """Ask the agent to end."""
        self._is_stopped = True
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)


def _bundle(request: Request, workers: int) -> dict[str, float]:
    """What one node must have free. Raises BackendError."""
    bundle: dict[str, float] = {"CPU": float(request.count("cpus_per_worker", 1) * workers)}
    if request.gpus:
        bundle["GPU"] = float(request.gpus * workers)
    for part in filter(None, request.option("resources").split(",")):
        name, _, amount = part.partition(":")
        try:
            bundle[name.strip()] = float(amount or 1)
        except ValueError:
            raise BackendError(f"resources={part!r}: give name:amount") from None
    return bundle


def _refuse_impossible(ray: Any, bundles: list[dict[str, float]]) -> None:
    """What no node of the cluster will ever have must not wait for ever. Raises BackendError."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    fits = [
        any(all(node.get(name, 0) >= amount for name, amount in bundle.items()) for node in nodes) for bundle in bundles
    ]
    if len(nodes) < len(bundles):
        raise BackendError(f"{len(bundles)} nodes are asked for, but the Ray cluster has {len(nodes)}")
    if not all(fits):
        wanted = ", ".join(f"{amount:g} {name}" for name, amount in bundles[fits.index(False)].items())
        have = "; ".join(", ".join(f"{node.get(name, 0):g} {name}" for name in ("CPU", "GPU")) for node in nodes)
        raise BackendError(
            f"no node of the Ray cluster has {wanted} (they have {have}): ask for less or for more nodes"
        )


def _connect(address: str) -> Any:
    """The module, connected. A connection that the user has made is used and left alone. Raises BackendError."""
    global _connections
    try:
        import ray
    except ImportError:
        raise BackendError('Ray is not installed: pip install "phalanx-training[ray]"') from None
    with _lock:
        if not ray.is_initialized():
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="phalanx")
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise BackendError(f"no Ray cluster at {address}: {str(error).strip().splitlines()[0]}") from error
            _connections += 1
        elif _connections:
            _connections += 1
    import ray.util.scheduling_strategies

    return ray


def _disconnect(ray: Any) -> None:
    """Give back what `_connect` took; the last call closes a connection that we have made."""
    global _connections
    with _lock:
        if _connections:
            _connections -= 1
            if not _connections:
                ray.shutdown()
