"""Nodes of a Ray cluster as targets: one actor a node holds the agent, in the environment that Ray's workers have.

The actor's class is sent by value and the agent as source, so the nodes need Ray, but nothing of phalanx.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from phalanx.preflight.channels import AgentError, AgentTimeoutError
from phalanx.preflight.packing import agent_library
from phalanx.preflight.targets import Target


class RayChannel:
    """An agent inside of an actor."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """Over a call of the actor."""
        try:
            messages: list[dict[str, Any]] = self._ray.get(self._actor.ask.remote(verb, args), timeout=timeout)
        except self._ray.exceptions.GetTimeoutError as error:
            raise AgentTimeoutError(f"no answer within {timeout:g} s") from error
        except self._ray.exceptions.RayError as error:
            raise AgentError(str(error).splitlines()[0]) from error
        for message in messages:
            if "error" in message:
                raise AgentError(str(message["error"]))
        return [message["data"] for message in messages if "data" in message]

    def close(self) -> None:
        """End the actor."""
        self._ray.kill(self._actor)


def targets_on_ray(address: str, wait: float) -> list[Target]:
    """One for each living node. Raises AgentError if there is no cluster, no Ray here, or a node starts no actor in time."""
    try:
        ray: Any = import_module("ray")
        scheduling: Any = import_module("ray.util.scheduling_strategies")
    except ImportError as error:
        raise AgentError("Ray is not installed here: pip install ray") from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise AgentError(f"no Ray cluster at {address}: {error}") from error
    agent = ray.remote(_agent_class())
    library = agent_library()
    found = []
    for node in ray.nodes():
        if node["Alive"]:
            place = scheduling.NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
            actor = agent.options(num_cpus=0, max_concurrency=64, scheduling_strategy=place).remote(library)
            found.append(Target("", "", (), RayChannel(ray, actor)))
    until = time.monotonic() + wait
    for target in found:
        target.ask("clock", {}, max(0.1, until - time.monotonic()))  # until it is there
    return found


def _agent_class() -> type:
    """Made here, so that it is sent by value: the nodes have no phalanx to import it from."""

    class Agent:
        def __init__(self, library: str) -> None:
            scope: dict[str, Any] = {}
            exec(library, scope)
            self._serve = scope["serve"]
            self._verbs = self._serve.verbs()

        def ask(self, verb: str, args: dict[str, Any]) -> list[dict[str, Any]]:
            messages: list[dict[str, Any]] = []
            self._serve.answer(self._verbs, {"id": 0, "do": verb, "args": args}, messages.append)
            return messages

    return Agent
