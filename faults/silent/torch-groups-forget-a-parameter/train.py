"""A tiny vision transformer on DDP."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class TinyViT(nn.Module):
    def __init__(self, patches=6, patch_dim=8, dim=16, classes=3):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, patches + 1, dim) * 0.02)
        self.patch = nn.Linear(patch_dim, dim)
        self.block = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.block(x)[:, 0])


def param_groups(model, weight_decay=0.05):
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    decay = [p for n, p in named if n.endswith("weight") and p.dim() > 1]
    no_decay = [p for n, p in named if n.endswith("bias") or (n.endswith("weight") and p.dim() == 1)]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    model = DDP(TinyViT())
    optimizer = torch.optim.AdamW(param_groups(model.module), lr=1e-3)
    before = model.module.pos_embed.detach().clone()
    x = torch.randn(96, 6, 8)
    data = TensorDataset(x, x.mean((1, 2)).gt(0).long())
    sampler = DistributedSampler(data)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for images, target in DataLoader(data, batch_size=8, sampler=sampler):
            loss = nn.functional.cross_entropy(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.4f}", flush=True)
        print(f"pos_embed moved {(model.module.pos_embed.detach() - before).norm().item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
