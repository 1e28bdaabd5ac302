"""A healthy job that is preempted: SIGTERM makes it save and leave; the second start resumes where it was."""

import os
import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

asked_to_stop = False


def on_sigterm(number, frame):
    global asked_to_stop
    asked_to_stop = True
    print(f"received signal {number}, saving and leaving", flush=True)


def main():
    signal.signal(signal.SIGTERM, on_sigterm)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(17)
    model = DistributedDataParallel(nn.Linear(24, 6))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    first = 1
    if Path("checkpoint.pt").exists():
        state = torch.load("checkpoint.pt")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"] + 1
        print(f"[rank {rank}] resumed at step {first}", flush=True)
    for step in range(first, 201):
        x = torch.randn(32, 24)
        loss = nn.functional.cross_entropy(model(x), x[:, :6].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
        if step % 40 == 0:
            print(f"[rank {rank}] step {step}/200 loss {loss.item():.4f}", flush=True)
        if step == 90 and first == 1 and rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        stop = torch.tensor([float(asked_to_stop)])
        dist.all_reduce(stop)
        if stop.item():
            if rank == 0:
                state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save(state, "checkpoint.pt")
                print(f"[rank 0] preempted: checkpoint of step {step} written", flush=True)
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
