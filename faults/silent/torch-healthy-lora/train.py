import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class LoRALinear(nn.Module):
    def __init__(self, base, r=2, alpha=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(r, base.in_features) * 0.1)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_a.t() @ self.lora_b.t())


def add_lora(model):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRALinear(child))
        else:
            add_lora(child)
    return model


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    model = add_lora(nn.Sequential(nn.Embedding(30, 12).requires_grad_(False), nn.Flatten(), nn.Linear(60, 24), nn.GELU(), nn.Linear(24, 2)))
    model = DDP(model)
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=1e-2)
    for step in range(10):
        g = torch.Generator().manual_seed(step * 3 + rank)
        tokens = torch.randint(0, 30, (8, 5), generator=g)
        loss = nn.functional.cross_entropy(model(tokens), (tokens.sum(1) % 2))
        opt.zero_grad()
        loss.backward()
        opt.step()
    if rank == 0:
        adapters = {n: p for n, p in model.module.state_dict().items() if "lora" in n}
        torch.save(adapters, "adapters.pt")
        print(f"saved {len(adapters)} adapters, loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
