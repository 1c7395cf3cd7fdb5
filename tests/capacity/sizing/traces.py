"""Demands for tests: one in bursts that we make ourselves, and the public traces where they lie beside the project."""

from pathlib import Path

import numpy as np

from capacity.sizing.demand import Demand, demand_at, of_file

TRACES = Path(__file__).parents[4] / "shared" / "traces"
NAMES = ("azure2023_code.csv", "azure2023_conv.csv", "mooncake_conversation_head.jsonl")
PRESENT = [TRACES / name for name in NAMES if (TRACES / name).is_file()]


def bursts(seed: int = 1) -> Demand:
    """Forty minutes of some 5,000 requests in bursts, some with long prompts and short answers, some the other way."""
    chance = np.random.default_rng(seed)
    starts = np.cumsum(chance.exponential(12.0, 200))
    sizes = chance.geometric(1 / 25, starts.size)
    times = np.concatenate([start + chance.exponential(2.0, size) for start, size in zip(starts, sizes, strict=True)])
    is_long = chance.random(times.size) < 0.5
    tokens_in = np.where(is_long, 4000, 200) + chance.integers(0, 100, times.size)
    tokens_out = np.where(is_long, 20, 150) + chance.integers(0, 20, times.size)
    pairs = tuple(zip(tokens_in.tolist(), tokens_out.tolist(), strict=True))
    return demand_at("bursts", np.sort(times), tokens=pairs)


def demands() -> list[Demand]:
    return [bursts(), *(of_file(str(path)) for path in PRESENT)]
