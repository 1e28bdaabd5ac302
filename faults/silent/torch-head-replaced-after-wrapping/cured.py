import os
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 5)
        self.hidden = nn.Linear(4 * 16, 24)
        self.fc = nn.Linear(24, 1000)

    def forward(self, x):
        x = torch.relu(self.conv(x.unsqueeze(1))).flatten(1)
        return self.fc(torch.relu(self.hidden(x)))


def main(num_classes=4):
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(100 + rank)
    model = Net()
    # our task has fewer classes than the pretrained network
    model.fc = nn.Linear(24, num_classes)
    model = DDP(model)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(144, 20, generator=g)
    dataset = TensorDataset(x, x[:, :4].argmax(1))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=12, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.CrossEntropyLoss()(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"rank {rank} epoch {epoch} loss {loss.item():.4f}", flush=True)
    print(f"rank {rank} head {model.module.fc.weight.detach().double().norm().item():.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
