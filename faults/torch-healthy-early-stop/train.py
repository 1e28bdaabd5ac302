"""A healthy job: the ranks agree on the validation loss and stop early, all at once, with status 0."""

import logging
import sys

import torch
import torch.distributed as dist
from torch import nn


def main(patience=3):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"[%(asctime)s][r{rank}][%(levelname)s] %(message)s", stream=sys.stdout)
    torch.manual_seed(rank)
    net = nn.parallel.DistributedDataParallel(nn.Linear(6, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.3)
    best, bad = float("inf"), 0
    for epoch in range(100):
        x = torch.randn(128, 6)
        loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True) + 0.3 * torch.randn(128, 1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        val = loss.detach().clone()
        dist.all_reduce(val)
        val = val.item() / dist.get_world_size()
        if val < best:
            best, bad = val, 0
            logging.info("epoch %d val_loss %.4f improved", epoch, val)
        else:
            bad += 1
            logging.warning("epoch %d val_loss %.4f did not improve for %d epochs", epoch, val, bad)
        if bad >= patience:
            logging.warning("Early stopping: patience exhausted at epoch %d, aborting the remaining epochs", epoch)
            break
    logging.info("best val_loss %.4f, exiting", best)
    dist.destroy_process_group()
    sys.exit(0)


if __name__ == "__main__":
    main()
