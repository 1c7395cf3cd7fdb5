"""From logits to tokens: greedy or by temperature and nucleus, each row by its own sequence's settings.

A sampled row uses one uniform number of its own sequence and the inverse of the cumulative distribution, so the
token it gets does not depend on what else is in the batch. Only printable characters and the end of text can be
drawn (`text`).
"""

from collections.abc import Sequence as Rows

import torch
from torch import Tensor

from demo_server.sequence import Sequence
from demo_server.text import EOS, PRINTABLE, VOCABULARY

# Nothing colder is told from greedy, and dividing by what float32 takes for 0 would leave no share to draw from.
COLDEST = 1e-4


def allowed_bias(device: torch.device) -> Tensor:
    """0 for tokens the model may say, -inf for all others: (vocabulary,)."""
    bias = torch.full((VOCABULARY,), float("-inf"), device=device)
    bias[[*PRINTABLE, EOS]] = 0.0
    return bias


def choose(logits: Tensor, bias: Tensor, rows: Rows[Sequence]) -> list[int]:
    """One token a row. logits (B, vocabulary) of any float type; the only wait for the device is the final copy."""
    logits = logits.float() + bias
    endless = [row for row, sequence in enumerate(rows) if sequence.sampling.ignore_eos]
    if endless:
        logits[endless, EOS] = float("-inf")
    tokens = logits.argmax(dim=-1)  # (B,)
    warm = [row for row, sequence in enumerate(rows) if sequence.sampling.temperature > 0]
    if warm:
        tokens[warm] = _draw(logits[warm], [rows[row] for row in warm])
    drawn: list[int] = tokens.tolist()
    return drawn


def _draw(logits: Tensor, rows: Rows[Sequence]) -> Tensor:
    def column(values: list[float]) -> Tensor:
        return torch.tensor(values, device=logits.device).unsqueeze(1)

    temperature = column([sequence.sampling.temperature for sequence in rows]).clamp(min=COLDEST)
    top_p = column([sequence.sampling.top_p for sequence in rows])
    uniform = column([sequence.uniform() for sequence in rows])
    share, token = (logits / temperature).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    # The nucleus: the likeliest tokens, up to and with the one that reaches top_p (Holtzman et al. 2020); never none,
    # however small a top_p that float32 takes for 0.
    outside = share.cumsum(dim=-1) - share >= top_p
    outside[:, 0] = False
    share = share.masked_fill(outside, 0.0)
    reached = share.cumsum(dim=-1)  # (rows, vocabulary), not yet divided by its last column
    place = torch.searchsorted(reached, uniform * reached[:, -1:], right=True)
    # Rounding may put the draw on the very end; the last token that has a share is meant then.
    place = place.minimum((share > 0).sum(dim=-1, keepdim=True) - 1)
    return token.gather(1, place).squeeze(1)
