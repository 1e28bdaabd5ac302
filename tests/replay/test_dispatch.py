"""Whoever makes a collective gets a Work that fails as the real one does, and that is complete when the call is written down."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.replay.record import INSIDE

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]
HANDLER = """\
def handle(operation, args, forward):
    returned = forward()
    work = dispatch.work_of(returned)
    if work is None or operation.kind.name == "_reduce_scatter_base_":
        return returned

    def note(_):
        time.sleep(0.2)
        late.append(now[0])

    given = dispatch.then(work, note)
    seen.append((now[0], operation.kind.name, "real" if given is work else "chained"))
    return dispatch.with_work(returned, given)
"""
SCRIPT = """\
import json, sys, time
sys.path.insert(0, INSIDE)
import torch, torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from phalanx_record import dispatch

dist.init_process_group("gloo", init_method="file://" + FILE, rank=0, world_size=1)
seen, late, now = [], [], ["start"]
# A module of the recorder's own package: who called is told by the first frame outside of it.
recorder = dict(__package__="phalanx_record", dispatch=dispatch, time=time, seen=seen, late=late, now=now)
exec(HANDLER, recorder)
model = torch.nn.Linear(4, 4)
made = torch.nn.parallel.DistributedDataParallel(model)
dispatch.stand_between(recorder["handle"])

def tell(name, act):
    now[0] = name
    act()
    if name not in late:
        print("not written down:", name, flush=True)

tell("ddp's constructor", lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4)))
tell("ddp", lambda: made(torch.ones(2, 4)).sum().backward())
tell("asynchronous", lambda: dist.all_reduce(torch.ones(5), async_op=True).wait())
tell("functional", lambda: functional.wait_tensor(functional.all_reduce(torch.ones(5), "sum", dist.group.WORLD)))
tell("direct", lambda: dist.group.WORLD.allreduce([torch.ones(5)]).wait())
print(json.dumps(seen))
"""


def test_who_waits_for_a_work_gets_the_real_one_and_who_waits_for_a_future_a_chained_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"INSIDE, FILE, HANDLER = {str(INSIDE)!r}, {str(tmp_path / 'meeting')!r}, {HANDLER!r}\n{SCRIPT}")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert "not written down" not in done.stdout, done.stdout
    seen = [tuple(one) for one in json.loads(done.stdout.splitlines()[-1])]
    kinds = {name: {kind for at, _, kind in seen if at == name} for name, _, _ in seen}
    assert kinds["ddp"] == {"chained"}  # its reducer waits for futures, and hears what failed from them
    assert kinds["asynchronous"] == {"chained"}
    assert kinds["functional"] == {"real"}  # C++ waits for the Work
    assert kinds["ddp's constructor"] == {"real"}
    assert kinds["direct"] == {"real"}
