"""Where the ranks of a job on one machine meet: ports that are held while it runs, and a store where they need one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phalanx.frameworks.launching import Meeting, needs_store
from phalanx.run.children import Children, end_helper
from phalanx.run.plan import Plan
from phalanx.run.ports import Ports, listening, loopback_interface


@contextmanager
def meet_here(plan: Plan, children: Children, run_id: str, attempt: int) -> Iterator[Meeting]:
    """Everything on the loopback interface. Raises OSError where there are no ports left."""
    with Ports(plan.framework.ports_needed(plan.size)) as ports:
        helper, store_port = None, None
        if needs_store(plan.framework):
            helper, store_port = start_store(children, "127.0.0.1")
        try:
            yield Meeting(
                ports=ports.numbers,
                run_id=run_id,
                roles=plan.seats,
                loopback=loopback_interface(),
                store_port=store_port,
                attempt=attempt,
                max_restarts=plan.spec.max_restarts,
                environment=plan.environment,
            )
        finally:
            if helper is not None:
                end_helper(helper)


def start_store(children: Children, host: str) -> tuple[subprocess.Popen[bytes], int]:
    """The store of Horovod's ranks, and its port."""
    with listening(host) as served:
        port = int(served.getsockname()[1])
        program = Path(__file__).with_name("store.py")
        argv = [sys.executable, "-I", "-S", str(program), str(served.fileno())]
        return children.start_helper(argv, [served.fileno()]), port
