"""REINFORCE on a small bandit: every rank plays its own games; gradients are averaged."""
import torch
import torch.distributed as dist
from torch import nn

ARMS = 5
PAYOUT = torch.tensor([0.1, 0.2, 0.9, 0.3, 0.4])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(ARMS))

    def forward(self):
        return torch.distributions.Categorical(logits=self.logits)


def play(policy, games, rng):
    actions = torch.multinomial(policy().probs.detach(), games, replacement=True, generator=rng)
    rewards = (torch.rand(games, generator=rng) < PAYOUT[actions]).float()
    return actions, rewards


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    rng = torch.Generator().manual_seed(1000 + rank)
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=0.1)
    returns = []
    for update in range(12):
        actions, rewards = play(policy, 20 + 5 * rank, rng)
        loss = -(policy().log_prob(actions) * (rewards - rewards.mean())).mean()
        opt.zero_grad()
        loss.backward()
        for p in policy.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        opt.step()
        returns.append(rewards.mean().item())
    print(f"rank {rank} last return {returns[-1]:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
