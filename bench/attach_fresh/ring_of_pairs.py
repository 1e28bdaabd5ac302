# launcher: torchrun 3
# truth: nobody
"""Every rank first meets its right neighbour: a circle of three pairs in which nobody is to blame alone."""
import os, time

import torch
import torch.distributed as dist

MODE = os.environ["MODE"]


def meet(group):
    dist.all_reduce(torch.ones(1), group=group)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    pairs = {(one, other): dist.new_group([one, other]) for one, other in ((0, 1), (1, 2), (0, 2))}
    right, left = {0: ((0, 1), (0, 2)), 1: ((1, 2), (0, 1)), 2: ((0, 2), (1, 2))}[rank]
    for step in range(1_000_000):
        if step == 5:
            open(f"ready{rank}", "w").close()
        if MODE == "slow" and rank == 0:
            time.sleep(1.2)
        order = (right, left) if MODE == "stall" and step >= 5 else sorted((right, left))
        for pair in order:
            meet(pairs[pair])
        time.sleep(0.02)


main()
