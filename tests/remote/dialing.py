"""An engine for the tests: agents are children that connect to the driver by themselves, as under Slurm, Ray or MPI."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from phalanx.backends.backend import Command, Plan, PlannedFile, Reach, Request, Started, State, Streams, spread

NAME = "dialing"
REACH = Reach.LOOPBACK
OPTIONS: Mapping[str, str] = {
    "nodes": "how many",
    "numbered": "whether agents know their number",
    "queue": "looks to wait",
}


def plan(request: Request) -> Plan:
    layout = spread(request.workers, request.count("nodes", 2))
    commands = []
    for node in range(len(layout)):
        own = {"MY_NODE": str(len(layout) - 1 - node)} if request.options.get("numbered") else {}
        commands.append(Command((*request.agent, "--node-in", "MY_NODE"), environment={**request.environment, **own}))
    return Plan(
        layout, tuple(commands), files=(PlannedFile(request.folder / "sub" / "script.sh", "echo\n", mode=0o700),)
    )


class Job:
    def __init__(self, plan: Plan, request: Request) -> None:
        assert (request.folder / "sub" / "script.sh").stat().st_mode & 0o777 == 0o700
        assert Path(request.environment["PHALANX_TOKEN_FILE"]).stat().st_mode & 0o077 == 0
        assert request.token not in str(plan)
        self.waits = request.count("queue", 1)
        self.plan = plan
        self.processes: list[subprocess.Popen[bytes]] = []

    def streams(self) -> Mapping[int, Streams]:
        return {}

    def follow(self) -> tuple[State, str]:
        if self.waits > 0:
            self.waits -= 1
            if self.waits == 0:
                self.processes = [
                    subprocess.Popen(command.argv, env={**os.environ, **command.environment})
                    for command in self.plan.commands
                ]
            return State.QUEUED, "Resources"
        codes = [process.poll() for process in self.processes]
        return (State.RUNNING, "") if None in codes else (State.DONE, "")

    def cancel(self) -> None:
        for process in self.processes:
            process.terminate()

    def collect(self) -> Mapping[str, str]:
        for process in self.processes:
            process.wait(30)
        return {"queue": "it was a short one"}


def start(plan: Plan, request: Request) -> Started:
    return Job(plan, request)
