"""The flags to paste, for servers whose flags are known. Numbers in, text out.

A step has room for B decodes and the prompt tokens that come meanwhile; the token budget bounds both together. It is
the largest with which a step full of prompt tokens stays within the promise of a token (Sarathi-Serve, OSDI 2024), but
never so small that prompts would queue for their turn. Names of flags: vLLM's and SGLang's server arguments,
trtllm-serve's options.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from capacity.batch.fit import Fit, Mix

SPARE = 2
"""How many times the least a budget must be, or prompts would wait for each other."""
TILE = 64
"""Budgets are whole numbers of these: matrix units work in such tiles."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens of a step: the least that processes prompts as fast as answers end, and what is advised; None where
    prompts were not seen to cost anything, and the server's own default is as good."""

    least: int
    advised: int | None


def token_budget(fitted: Fit, mix: Mix, batch: int, step_s: float | None) -> Budget:
    """The budget for a batch of which a step may take `step_s`."""
    least = math.ceil(batch * (1 + mix.prompt_each) / TILE) * TILE
    if step_s is None or fitted.d <= 0:
        return Budget(least, None)
    left_s = step_s - fitted.a - (fitted.b + fitted.c * mix.held) * batch
    return Budget(least, max(math.floor((left_s / fitted.d + batch) / TILE) * TILE, SPARE * least))


def flags(batch: int, budget: Budget, kv_blocks: int) -> Mapping[str, str]:
    """For each server its flags; a budget that nothing bounds is left to the server's own default."""

    def line(of_batch: str, of_tokens: str) -> str:
        return f"{of_batch} {batch}" + (f" {of_tokens} {budget.advised}" if budget.advised is not None else "")

    return {
        "vllm": line("--max-num-seqs", "--max-num-batched-tokens"),
        "sglang": line("--max-running-requests", "--chunked-prefill-size"),
        "tensorrt-llm": line("--max_batch_size", "--max_num_tokens"),
        "demo-server": f"{line('--max-batch', '--token-budget')} --kv-blocks {kv_blocks}",
    }
