import os
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD_SIZE = int(os.environ["WORLD_SIZE"])
RANK = int(os.environ["RANK"])


class CharModel(nn.Module):
    def __init__(self, vocab=24, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.out(hidden)


def reduce_gradients(model):
    for param in model.parameters():
        if param.requires_grad:
            dist.all_reduce(param.grad, op=dist.ReduceOp.SUM)
            param.grad.div_(WORLD_SIZE)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(17)
    text = torch.randint(0, 24, (4000,))
    model = CharModel()
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    length, batch = 12, 8
    windows = text[: len(text) // length * length].view(-1, length)
    mine = windows[RANK::WORLD_SIZE]
    for step in range(10):
        tokens = mine[step * batch : (step + 1) * batch]
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        reduce_gradients(model)
        if RANK == 0:
            print(f"{step:03d} {loss.item():.4f}", flush=True)
    print(f"rank {RANK} weights {sum(p.detach().double().sum() for p in model.parameters()).item():.10f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
