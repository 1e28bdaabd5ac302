"""A healthy job: two pipeline stages that pass activations and gradients to each other."""

import logging

import torch
import torch.distributed as dist
from torch import nn

MICRO, WIDTH = 16, 32


def main():
    dist.init_process_group("gloo")
    stage = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s stage{stage} %(levelname)s %(message)s")
    torch.manual_seed(stage)
    part = nn.Sequential(nn.Linear(8, WIDTH), nn.Tanh()) if stage == 0 else nn.Linear(WIDTH, 2)
    opt = torch.optim.SGD(part.parameters(), lr=0.2)
    for step in range(30):
        opt.zero_grad()
        if stage == 0:
            out = part(torch.randn(MICRO, 8))
            dist.send(out.detach(), 1)
            grad = torch.empty_like(out)
            dist.recv(grad, 1)
            out.backward(grad)
            error = grad.norm().item()
        else:
            got = torch.empty(MICRO, WIDTH)
            dist.recv(got, 0)
            got.requires_grad_()
            loss = nn.functional.cross_entropy(part(got), (got.sum(1) > 0).long())
            loss.backward()
            dist.send(got.grad, 0)
            error = loss.item()
        opt.step()
        if step % 10 == 0:
            logging.info("step %d error %.5f", step, error)
    logging.info("stage closed, connection to peer released")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
