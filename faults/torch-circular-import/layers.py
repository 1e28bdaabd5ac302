"""Layers of the model."""

from losses import TEMPERATURE
from torch import nn


def normalise(x):
    return nn.functional.normalize(x, dim=1) / TEMPERATURE**0.5


class Projector(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, 16))

    def forward(self, x):
        return self.mlp(x)
