"""The job of run_vs_torchrun.py: a small DDP training that runs so many steps as it is told, when it is told, and tells its times.

Each rank reads numbers of steps, a line each, from its own pipe in BENCH_FOLDER, and writes what each step took to another. With
"bare" behind the number the watch inside the rank, if there is one, does nothing meanwhile.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

width, folder = int(sys.argv[1]), Path(os.environ["BENCH_FOLDER"])
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
first = time.time()
rank = dist.get_rank()
torch.manual_seed(0)
layers = [torch.nn.Linear(width, width) for _ in range(4)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(32, width)


def step() -> None:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


inside = sys.modules.get("phalanx_inside")
usual = {name: getattr(inside._Watch, name) for name in ("_groups", "beat")} if inside is not None else {}


def rest(bare: bool) -> None:
    """Take the watch's work away, or give it back; its thread wakes up as often as before."""
    for name, function in usual.items():
        setattr(inside._Watch, name, (lambda *_: None) if bare else function)


for _ in range(10):
    step()
watching = [thread.native_id for thread in threading.enumerate() if thread.name == "phalanx-watch"]
(folder / f"watching-{rank}").write_text(" ".join(map(str, watching)))
launcher = os.getppid()
status = Path(f"/proc/{launcher}/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
facts = {"pid": os.getpid(), "launcher": launcher, "first": first, "launcher_mb": peak / 1024}
(folder / f"started-{rank}.new").write_text(json.dumps(facts))
(folder / f"started-{rank}.new").rename(folder / f"started-{rank}")
with (folder / f"told-{rank}").open() as told, (folder / f"answer-{rank}").open("w") as answer:
    for line in told:
        number, *wish = line.split()
        rest("bare" in wish)
        times = []
        for _ in range(int(number)):
            began = time.perf_counter()
            step()
            times.append(time.perf_counter() - began)
        answer.write(json.dumps(times) + "\n")
        answer.flush()
dist.destroy_process_group()
