import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.optim.lr_scheduler import ConstantLR
from torch.utils.data import DataLoader, TensorDataset


def training_function(config, args):
    accelerator = Accelerator(cpu=True)
    set_seed(config["seed"])
    x = torch.randn(128, 6)
    train_dataloader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True).tanh()), shuffle=True, batch_size=config["batch_size"])
    model = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.ReLU(), torch.nn.Linear(24, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    scheduler = ConstantLR(optimizer, factor=1.0)
    model, optimizer, train_dataloader, scheduler = accelerator.prepare(model, optimizer, train_dataloader, scheduler)
    for epoch in range(config["num_epochs"]):
        model.train()
        for step, (inputs, targets) in enumerate(train_dataloader):
            if epoch == 0 and step == 0:
                print(f"rank {accelerator.process_index} first {inputs.sum().item():.6f}", flush=True)
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
    accelerator.end_training()


def main():
    parser = argparse.ArgumentParser()
    args = parser.parse_args()
    training_function({"lr": 2e-3, "num_epochs": 1, "seed": 42, "batch_size": 16}, args)


if __name__ == "__main__":
    main()
