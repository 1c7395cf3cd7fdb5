"""The oracle: the same weights, run the plain way: full causal attention, no cache, no batch.

Written from the model's description, not from its code: float64, one head at a time, rotation by complex numbers.
"""

import math

import torch
from torch import Tensor

from demo_server.model import Decoder


def logits(model: Decoder, tokens: list[int]) -> Tensor:
    """Logits after each of the tokens: (T, vocabulary), float64."""
    shape = model.shape
    weights = {name: weight.double() for name, weight in model.state_dict().items()}
    x = weights["embedding.weight"][tokens]  # (T, width)
    for number in range(shape.layers):
        layer = {
            name.removeprefix(f"layers.{number}."): weight
            for name, weight in weights.items()
            if name.startswith(f"layers.{number}.")
        }
        x = x + _attention(model, layer, _norm(x, layer["attention_norm.weight"]))
        gate, up = (_norm(x, layer["feed_norm.weight"]) @ layer["gate_up.weight"].T).split(shape.hidden, dim=1)
        x = x + (gate * gate.sigmoid() * up) @ layer["down.weight"].T
    after: Tensor = _norm(x, weights["norm.weight"]) @ weights["head.weight"].T
    return after


def _norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(dim=1, keepdim=True) + 1e-5).sqrt() * weight


def _attention(model: Decoder, layer: dict[str, Tensor], x: Tensor) -> Tensor:
    shape = model.shape
    width, kv_width = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    q, k, v = torch.split(x @ layer["attention.qkv.weight"].T, [width, kv_width, kv_width], dim=1)
    read = []
    for head in range(shape.heads):
        own = slice(head * shape.head_width, (head + 1) * shape.head_width)
        shared = head // (shape.heads // shape.kv_heads)
        theirs = slice(shared * shape.head_width, (shared + 1) * shape.head_width)
        query, key = _turned(model, q[:, own]), _turned(model, k[:, theirs])
        scores = query @ key.T / math.sqrt(shape.head_width)
        scores = scores + torch.full_like(scores, float("-inf")).triu(1)
        read.append(scores.softmax(dim=1) @ v[:, theirs])
    return torch.cat(read, dim=1) @ layer["attention.out.weight"].T


def _turned(model: Decoder, x: Tensor) -> Tensor:
    half = model.shape.head_width // 2
    angle = torch.tensor(
        [[t * model.shape.rope_base ** (-i / half) for i in range(half)] for t in range(len(x))], dtype=torch.float64
    )
    turned = torch.complex(x[:, :half], x[:, half:]) * torch.exp(1j * angle)
    return torch.cat((turned.real, turned.imag), dim=1)
