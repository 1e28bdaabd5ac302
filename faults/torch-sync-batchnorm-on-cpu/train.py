"""The layers are converted to SyncBatchNorm, which runs on accelerators alone, and the job trains on the CPU."""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn


def conv_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNetLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = conv_block(3, 8)
        self.mid = conv_block(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.seg = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.mid(nn.functional.max_pool2d(a, 2))
        return self.seg(torch.cat([a, self.up(b)], dim=1))


def get_args():
    ap = argparse.ArgumentParser("segmentation")
    ap.add_argument("--sync-bn", action=argparse.BooleanOptionalAction, default=True)
    ap.add_argument("--iters", default=12, type=int)
    return ap.parse_args()


def main():
    args = get_args()
    dist.init_process_group("gloo")
    net = UNetLike()
    if args.sync_bn:
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    print(f"rank={dist.get_rank()} args={vars(args)}", flush=True)
    net = nn.parallel.DistributedDataParallel(net)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    t0 = time.time()
    for i in range(args.iters):
        images, masks = torch.rand(4, 3, 32, 32), torch.randint(0, 4, (4, 32, 32))
        out = net(images)
        loss = nn.functional.cross_entropy(out, masks)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        print(f"rank={dist.get_rank()} iter={i} loss={loss.item():.3f} elapsed={time.time() - t0:.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
