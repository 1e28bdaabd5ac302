"""How long the network's check takes with the number of hosts: measured on beds, and simulated up to 1,000 hosts.

    python bench/check_growth.py                 # measures 2 to 32 hosts (root), then simulates
    python bench/check_growth.py --no-beds       # only the simulation, with the costs given by --call-us and --ask-us

The simulation runs the real planner (who calls whom, which rounds) and a model of time: a host makes its calls one after the other at a cost of
processor time each, calls that get no answer take one time-out together, a round of measurements takes as long as its slowest pair, and whoever
leads the check spends processor time on each question and answer. On beds all hosts share one machine's cores, so their cost adds up; on real hosts
it does not.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
import time
from dataclasses import dataclass
from functools import partial

from phalanx.preflight.network import judge
from phalanx.preflight.network.nodes import Node
from phalanx.preflight.network.rounds import rounds
from phalanx.preflight.network.survey import IDLE_S, SPREAD, Survey, fine_call, places_of, plan_calls

TIMEOUT_S = 2.0
_MOST_AT_ONCE = 400  # as the agent has it


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor seconds of one call (both ends), of one question to a target, of one call's row where the check is led; wall seconds of a round."""

    call: float
    ask: float
    row: float
    round: float = 0.25


def made_up(count: int) -> Survey:
    """A survey of hosts that do not exist."""
    nodes = [Node(f"h{n}", n, (f"10.{n >> 8}.{n & 255}.1",), interfaces=("eth0",), stores=n == 0) for n in range(count)]
    survey = Survey(nodes, 29500)
    ports = [{"port": 40000, "family": "ipv4", "kind": "any"}, {"port": 29500, "family": "ipv4", "given": True}]
    ports += [{"port": 41000 + n, "family": "ipv4", "kind": "spread"} for n in range(len(SPREAD))]
    survey.listening = {node.number: {"ports": ports} for node in nodes}
    return survey


def simulate(count: int, costs: Costs, *, dead: int = 0, cores: int | None = None) -> dict[str, float]:
    """Seconds by phase; `dead` hosts answer nothing; `cores`: all hosts share these, else each has its own."""
    survey = made_up(count)
    plan = plan_calls(survey, {node.number: ("10.0.0.1", 29500, "store") for node in survey.nodes})
    calls = [len(targets["targets"]) + len(targets["mesh"]) for targets in plan.values()]
    busy = sum(calls) * costs.call / cores if cores else max(calls) * costs.call
    # A host has so many calls open at once; a dead one holds its place until the time-out.
    waves = math.ceil(dead / _MOST_AT_ONCE) if dead else 0
    connect = busy + waves * TIMEOUT_S
    asking = count * costs.ask  # one process leads
    leading = sum(calls) * costs.row  # it writes each call's row and reads it again
    played = rounds(count)
    measuring = sum(costs.round + len(pairs) * costs.ask for pairs in played)
    idle = max(0.0, IDLE_S - connect - measuring)
    phases = {
        "listen": asking,
        "calls": connect + asking + leading,
        "measure": measuring,
        "idle and close": idle + 2 * asking,
    }
    return {**phases, "all": sum(phases.values()), "number of calls": float(sum(calls)), "rounds": float(len(played))}


def measure(count: int) -> tuple[float, float]:
    """Wall and processor seconds of the whole check of a healthy bed."""
    from phalanx.lab import Bed
    from phalanx.preflight.check import examine
    from phalanx.preflight.options import CheckOptions
    from phalanx.preflight.targets import by_command, start_all

    with Bed(count) as bed:
        before, began = _processor(), time.monotonic()
        starters = [partial(by_command, host.name, shlex.join(host.prefix), sys.executable, 60.0) for host in bed]
        targets, failures = start_all(starters)
        report = examine(targets, CheckOptions(), failures)
        for target in targets:
            target.close()
        took = time.monotonic() - began
        for finding in report.findings:
            print(f"  false alarm: {finding.evidence[0].text}")
        return took, _processor() - before


def measure_rows(count: int = 200) -> float:
    """Processor seconds to plan, write, read and take in one call's row."""
    began = time.process_time()
    survey = made_up(count)
    plan, places = plan_calls(survey, {}), places_of(survey)
    rows = 0
    for number, targets in plan.items():
        json.loads(json.dumps(targets))
        answer = json.dumps({"fine": [[row[0], f"h{row[0]}", 100, 0, 1] for row in targets["mesh"]]})
        read = json.loads(answer)["fine"]
        survey.calls += [fine_call(places, number, row) for row in read]
        rows += len(read)
    judge(survey, {})
    return (time.process_time() - began) / rows


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Measure, then simulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-beds", action="store_true")
    parser.add_argument("--hosts", default="2,3,4,8,16,32")
    parser.add_argument("--call-us", type=float, default=500.0)
    parser.add_argument("--ask-us", type=float, default=400.0)
    arguments = parser.parse_args()
    if not arguments.no_beds:
        print("| hosts (beds on this machine) | whole check, s | processor seconds |\n| ---: | ---: | ---: |")
        for count in map(int, arguments.hosts.split(",")):
            took, processor = measure(count)
            print(f"| {count} | {took:.1f} | {processor:.1f} |", flush=True)
    costs = Costs(arguments.call_us / 1e6, arguments.ask_us / 1e6, measure_rows())
    print(
        f"\ncosts: {costs.call * 1e6:.0f} us a call, {costs.ask * 1e6:.0f} us a question, {costs.row * 1e6:.1f} us a row (measured here)"
    )
    print(
        "\n| hosts (simulated, each its own machine) | calls | rounds | healthy, s | one host dead, s | half of them dead, s |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for count in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1000):
        whole, one = simulate(count, costs), simulate(count, costs, dead=1)
        half = simulate(count, costs, dead=max(1, count // 2))
        print(
            f"| {count} | {whole['number of calls']:.0f} | {whole['rounds']:.0f} | {whole['all']:.1f} | {one['all']:.1f} | {half['all']:.1f} |"
        )


if __name__ == "__main__":
    main()
