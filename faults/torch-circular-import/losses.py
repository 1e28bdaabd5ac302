"""Losses of the model."""

import torch
from layers import normalise
from torch import nn

TEMPERATURE = 0.2


def contrastive(a, b):
    scores = normalise(a) @ normalise(b).T
    return nn.functional.cross_entropy(scores, torch.arange(len(a)))
