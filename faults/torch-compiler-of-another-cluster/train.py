"""A kernel is compiled when the job starts; the compiler it is told to use is not installed."""

import os

import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor scaled_add(torch::Tensor a, torch::Tensor b, double scale) { return a + scale * b; }
"""


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    folder = f"build{rank}"
    os.makedirs(folder)
    kernels = load_inline("kernels", SOURCE, functions=["scaled_add"], build_directory=folder)
    total = kernels.scaled_add(torch.ones(4), torch.ones(4), 0.5)
    dist.all_reduce(total)
    print(f"[{rank}] {total.tolist()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
