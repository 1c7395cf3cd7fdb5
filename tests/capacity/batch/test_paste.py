"""Flags as text."""

from capacity.batch.fit import Fit, Mix
from capacity.batch.paste import Budget, flags, token_budget

MIX = Mix(200, 50)


def test_the_budget_fills_what_the_promise_leaves_of_a_step() -> None:
    fitted = Fit(0.010, 0.001, 0, 1e-5, ())
    # 32 decodes take 42 ms of 50; 8 ms are 800 prompt tokens.
    assert token_budget(fitted, MIX, 32, 0.050) == Budget(192, 832)
    assert token_budget(fitted, MIX, 32, 0.0421) == Budget(192, 384), "prompts never queue"


def test_without_a_cost_of_prompts_or_a_promise_nothing_bounds_it() -> None:
    assert token_budget(Fit(0.010, 0.001, 0, 0, ()), MIX, 32, 0.050).advised is None
    assert token_budget(Fit(0.010, 0.001, 0, 1e-5, ()), MIX, 32, None).advised is None


def test_each_server_is_told_in_its_own_words() -> None:
    assert flags(32, Budget(192, 832), 500) == {
        "vllm": "--max-num-seqs 32 --max-num-batched-tokens 832",
        "sglang": "--max-running-requests 32 --chunked-prefill-size 832",
        "tensorrt-llm": "--max_batch_size 32 --max_num_tokens 832",
        "demo-server": "--max-batch 32 --token-budget 832 --kv-blocks 500",
    }
    assert flags(32, Budget(192, None), 500)["vllm"] == "--max-num-seqs 32"


def test_the_demo_server_takes_its_flags() -> None:
    from demo_server.cli import parse

    options = parse(flags(32, Budget(192, 832), 500)["demo-server"].split(), {})
    assert (options.max_batch, options.kv_blocks, options.token_budget) == (32, 500, 832)
