"""The models that recording is measured with: what each is, how FSDP2 cuts it, and a pass over one batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

BYTES = 256  # the vocabulary of `small`: texts as bytes
CONTEXT = 64


class Block(nn.Module):
    """One layer of a GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asks, self.joins = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feeds = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape
        parts = self.asks(self.before(x)).split(width, 2)
        query, key, value = (part.view(count, length, self.heads, -1).transpose(1, 2) for part in parts)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.joins(seen.transpose(1, 2).reshape(count, length, width))
        return x + self.feeds(self.between(x))


class Transformer(nn.Module):
    """A GPT that predicts the next byte of a text."""

    def __init__(self, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(BYTES, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.ends = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, BYTES))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.ends(self.blocks(self.words(text) + self.places(torch.arange(text.shape[1]))))


def perceptron(width: int) -> nn.Sequential:
    """Four square layers: nearly nothing is computed for a parameter, so that what is paid by bytes and calls shows most."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def make(size: str) -> tuple[nn.Module, list[nn.Module], torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]:
    """The model, the modules that FSDP2 shards one by one, a batch, and a loss of the output for it."""
    if size == "small":
        model = Transformer(192, 4, 4)
        text = torch.randint(0, BYTES, (8, CONTEXT + 1))
        wanted = text[:, 1:].flatten()
        return (
            model,
            list(model.blocks),
            text[:, :-1].contiguous(),
            lambda out: nn.functional.cross_entropy(out.flatten(0, 1), wanted),
        )
    width = {"tiny": 256, "large": 1024}[size]
    plain = perceptron(width)
    return (
        plain,
        [layer for layer in plain if isinstance(layer, nn.Linear)],
        torch.randn(256, width),
        lambda out: out.square().mean(),
    )
