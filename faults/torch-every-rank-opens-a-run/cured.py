"""The same job where rank 0 alone logs."""

import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Run:
    """A tracker that opens a run folder when it is made."""

    def __init__(self, project):
        self.folder = Path("runs") / f"{project}-{time.time_ns()}"
        self.folder.mkdir(parents=True)
        print(f"tracker: created run {self.folder.name} in project {project}", flush=True)

    def log(self, **values):
        with (self.folder / "metrics.jsonl").open("a") as stream:
            stream.write(json.dumps(values) + "\n")


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    run = Run("tiny-classifier") if dist.get_rank() == 0 else None
    model = DistributedDataParallel(nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for step in range(20):
            x = torch.randn(32, 32)
            loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if run is not None:
            run.log(epoch=epoch, loss=loss.item())
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.barrier()
    runs = len(list(Path("runs").iterdir()))
    if dist.get_rank() == 0 and runs > 1:
        print(f"warning: one job, but {runs} runs in the project", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
