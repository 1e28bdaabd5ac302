import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(1, device_specific=False)
    model = nn.Sequential(nn.Linear(16, 48), nn.SiLU(), nn.Linear(48, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(192, 16, generator=g)), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    unet = accelerator.unwrap_model(model)
    set_seed(1, device_specific=True)
    model.train()
    for step, (latents,) in enumerate(loader):
        noise = torch.randn_like(latents)
        noisy = latents + 0.5 * noise
        prediction = unet(noisy)
        loss = nn.functional.mse_loss(prediction, noise)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 0:
            accelerator.print(f"step {step} loss {loss.item():.4f}", flush=True)
    total = sum(p.detach().double().abs().sum() for p in unet.parameters()).item()
    print(f"rank {accelerator.process_index} weights {total:.8f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
