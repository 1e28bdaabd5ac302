"""Masked language modelling on random sentences."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

MASK, VOCAB, LENGTH = 0, 32, 10


class MaskingCollator:
    def __init__(self, probability=0.3):
        self.probability = probability
        self.generator = torch.Generator().manual_seed(dist.get_rank())

    def __call__(self, sentences):
        tokens = torch.stack(sentences)
        mask = torch.rand(tokens.shape, generator=self.generator) < self.probability
        return torch.where(mask, MASK, tokens), tokens, mask


class Model(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.mix = nn.Linear(dim * LENGTH, dim * LENGTH)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        h = self.embed(tokens)
        h = h + self.mix(h.flatten(1)).view_as(h)
        return self.head(h)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    g = torch.Generator().manual_seed(5)
    sentences = list(torch.randint(1, VOCAB, (120, LENGTH), generator=g))
    sampler = DistributedSampler(sentences)
    loader = DataLoader(sentences, batch_size=6, sampler=sampler, collate_fn=MaskingCollator())
    torch.manual_seed(7)
    model = DDP(Model())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, (inputs, targets, mask) in enumerate(loader):
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits[mask], targets[mask])
        opt.zero_grad()
        loss.backward()
        opt.step()
    where = "".join("x" if m else "." for m in mask.flatten().tolist())
    print(f"rank {rank} masked {where}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
