# launcher: mpirun 3
# truth: 0
"""Rank 0 alone asks FSDP for the full state, which is a collective; the others go on to the next step's end."""
import os, time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType

MODE = os.environ["MODE"]
os.environ.update(RANK=os.environ["OMPI_COMM_WORLD_RANK"], WORLD_SIZE=os.environ["OMPI_COMM_WORLD_SIZE"])


def save(model, step):
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        state = model.state_dict()
    torch.save(state, f"step{step}.pt")


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = FullyShardedDataParallel(torch.nn.Linear(32, 32), device_id=torch.device("cpu"))
    for step in range(1_000_000):
        model(torch.randn(4, 32)).sum().backward()
        if step == 5:
            open(f"ready{rank}", "w").close()
            if MODE == "stall":
                if rank == 0:
                    save(model, step)
                dist.barrier()
        if MODE == "slow" and rank == 0:
            time.sleep(1.2)
        time.sleep(0.02)


main()
