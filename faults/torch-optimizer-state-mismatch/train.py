"""A run was saved with a frozen encoder; it is resumed with every layer trainable, so the optimizer's state does not fit."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def build(freeze):
    encoder = nn.Sequential(nn.Linear(20, 48), nn.GELU(), nn.Linear(48, 12))
    decoder = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 20))
    if freeze:
        encoder.requires_grad_(False)
    return nn.Sequential(encoder, decoder)


def trainable(net):
    return [p for p in net.parameters() if p.requires_grad]


def first_phase(path):
    torch.manual_seed(0)
    net = build(freeze=True)
    opt = torch.optim.Adam(trainable(net), lr=1e-3)
    x = torch.randn(64, 20)
    for _ in range(5):
        opt.zero_grad()
        nn.functional.mse_loss(net(x), x).backward()
        opt.step()
    if dist.get_rank() == 0:
        torch.save({"epoch": 5, "net": net.state_dict(), "optimizer": opt.state_dict()}, path)


def main(opts):
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    first_phase(opts.resume)
    dist.barrier()
    net = build(freeze=opts.freeze)
    opt = torch.optim.Adam(trainable(net), lr=opts.lr)
    state = torch.load(opts.resume)
    net.load_state_dict(state["net"])
    print(f"=> loaded weights of '{opts.resume}' (epoch {state['epoch']})", flush=True)
    opt.load_state_dict(state["optimizer"])
    net = DistributedDataParallel(net)
    for epoch in range(state["epoch"], state["epoch"] + opts.epochs):
        x = torch.randn(64, 20)
        loss = nn.functional.mse_loss(net(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            print(f"Epoch: [{epoch}] Loss {loss.item():.4e}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="autoencoder")
    parser.add_argument("--resume", default="autoencoder.pth.tar")
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--freeze", action="store_true")
    main(parser.parse_args())
