"""From logits to tokens, on the device: greedy or by temperature and nucleus, each row by its own sequence's settings.

A sampled row uses one uniform number of its own sequence and the inverse of the cumulative distribution, so the
token it gets does not depend on what else is in the batch. Only printable characters and the end of text can be
drawn (`text`). Nothing here asks the device for a value.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from demo_server.text import EOS, PRINTABLE, VOCABULARY

# Nothing colder is told from greedy, and dividing by what float32 takes for 0 would leave no share to draw from.
COLDEST = 1e-4


@dataclass(frozen=True, slots=True)
class Rules:
    """How each row's token is chosen. `draws` are temperature (0 is greedy), top_p and a uniform number in [0, 1); None
    where every row is greedy."""

    endless: Tensor  # (B,) int64, not 0 where the end of text may not be said
    draws: Tensor | None = None  # (3, B) float32


def allowed_bias(device: torch.device) -> Tensor:
    """0 for tokens the model may say, -inf for all others: (vocabulary,)."""
    bias = torch.full((VOCABULARY,), float("-inf"))
    bias[[*PRINTABLE, EOS]] = 0.0
    return bias.to(device)


def choose(logits: Tensor, bias: Tensor, rules: Rules) -> Tensor:
    """One token a row: (B,) int64. logits (B, vocabulary) of any float type."""
    logits = logits.float() + bias
    logits[:, EOS].masked_fill_(rules.endless != 0, float("-inf"))
    greedy = logits.argmax(dim=-1)
    if rules.draws is None:
        return greedy
    temperature, top_p, uniform = rules.draws.unsqueeze(-1).unbind(0)  # (B, 1) each
    drawn = _draw(logits / temperature.clamp(min=COLDEST), top_p, uniform)
    return torch.where(temperature.squeeze(1) > 0, drawn, greedy)


def _draw(logits: Tensor, top_p: Tensor, uniform: Tensor) -> Tensor:
    share, token = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    # The nucleus: the likeliest tokens, up to and with the one that reaches top_p (Holtzman et al. 2020); never none,
    # however small a top_p that float32 takes for 0.
    outside = share.cumsum(dim=-1) - share >= top_p
    outside[:, 0].fill_(False)
    share = share.masked_fill(outside, 0.0)
    reached = share.cumsum(dim=-1)  # (B, vocabulary), not yet divided by its last column
    place = torch.searchsorted(reached, uniform * reached[:, -1:], right=True)
    # Rounding may put the draw on the very end; the last token that has a share is meant then.
    place = place.minimum((share > 0).sum(dim=-1, keepdim=True) - 1)
    return token.gather(1, place).squeeze(1)
