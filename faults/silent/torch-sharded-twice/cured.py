import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Subset

from corpus import Corpus, split_dataset_by_node


class Bag(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, 12, mode="mean")
        self.out = nn.Linear(12, 2)

    def forward(self, tokens):
        return self.out(self.bag(tokens))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    corpus = Corpus(200)
    shard = split_dataset_by_node(corpus, rank=rank, world_size=world)
    sampler = RandomSampler(shard)
    loader = DataLoader(shard, batch_size=10, sampler=sampler)
    model = DDP(Bag(corpus.vocab))
    opt = torch.optim.AdamW(model.parameters(), lr=0.02)
    covered = torch.zeros(len(corpus))
    for epoch in range(1):
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
        for index, tokens, label in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens), label)
            loss.backward()
            opt.step()
            covered[index] = 1
    dist.all_reduce(covered, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(f"loss {loss.item():.4f}, covered {int(covered.sum())} of {len(corpus)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
