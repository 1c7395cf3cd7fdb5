"""bench/engine.py runs, and counts what it says it counts."""

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import torch

from bench.engine_parts.estimate import Decode, estimate
from demo_server.fused import FUSED
from demo_server.model import Decoder, ModelShape
from demo_server.operators import PLAIN, Operators
from demo_server.sequence import Output
from demo_server.text import VOCABULARY

SCRIPT = Path(__file__).parents[2] / "bench" / "engine.py"


@pytest.fixture(scope="module")
def engine() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_engine", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=150)


def test_it_measures_what_was_asked_for() -> None:
    ran = bench("--batch", "2", "--markdown", "--check")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "2.6 million parameters on cpu" in ran.stdout
    assert "\n| 2 | " in ran.stdout
    assert "not judged: batch 32 was not measured" in ran.stdout


def test_a_batch_that_is_none_is_said() -> None:
    ran = bench("--batch", "0")
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (2, "engine.py: error: --batch: from 1 to 1024")


def test_tokens_are_counted_while_all_run(engine: ModuleType) -> None:
    watch = engine.Watch(2)
    watch.take([Output(1, "a", 1)])
    watch.take([Output(1, "a", 2), Output(2, "a", 1)])
    assert watch.began is not None
    watch.take([Output(1, "a", 3), Output(2, "a", 2)])
    watch.take([Output(1, "a", 4, "length"), Output(2, "a", 3)])
    assert watch.ended is not None
    watch.take([Output(2, "a", 4, "length")])
    assert watch.tokens == 4
    assert watch.is_over.is_set()


def test_the_promise_is_kept_by_either_clock_and_by_no_smaller_model(engine: ModuleType) -> None:
    fast, slow = engine.Arm(32, 3200, 4.0, 1.0, 0.001), engine.Arm(32, 3200, 4.0, 3.0, 0.001)
    assert engine.rate_verdict([fast], 2_600_000)[0]
    assert not engine.rate_verdict([slow], 2_600_000)[0]
    assert not engine.rate_verdict([fast], 1_000_000)[0]
    assert fast.row() == ("32", "800", "3,200", "40.00", "10.00", "1.00", "10.0")


def test_a_gpu_is_judged_by_the_clock_on_the_wall_against_what_must_be_read(engine: ModuleType) -> None:
    def arm(wall_s: float, *, is_on_cpu: bool = False) -> object:
        return engine.Arm(64, 640, wall_s, 0.001, 0.002, is_on_cpu)

    assert engine.floor_verdict([arm(0.05)]) == (
        True,
        "kept: a step of batch 64 takes 2.50 times the floor, context up to 256; at most 2.5 are promised",
    )
    assert not engine.floor_verdict([arm(0.06)])[0]
    assert engine.floor_verdict([arm(0.05, is_on_cpu=True)]) == (
        False,
        "not judged: batch 64 was not measured on a GPU",
    )


def test_the_large_preset_has_a_billion_parameters(engine: ModuleType) -> None:
    with torch.device("meta"):
        model = Decoder(engine.SHAPES["1b"]).bfloat16()
    weights = sum(weight.numel() for weight in model.parameters())
    assert 0.95e9 < weights < 1.05e9
    # Every weight once, and per row and cached token keys and values of 16 layers, 8 heads of 64, 2 bytes each.
    cached = 64 * (32 + 256) / 2 * 16 * 2 * 8 * 64 * 2
    embedded = 264 * 2048 * 2
    assert engine.read_once(model, 64) == weights * 2 - embedded + cached


def test_an_estimate_needs_no_gpu_and_says_that_it_is_one(
    engine: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["engine.py", "--preset", "1b", "--estimate"])
    assert engine.main() == 0
    first, *_, fused, plain = capsys.readouterr().out.splitlines()
    assert first == "Estimated from the sizes of operands, not measured: one step, batch 64, 144 tokens held by each."
    assert fused.startswith("with Triton: 154 launches, 1.08 times the floor of 2,249 MB; 2.5 floors at 4 TB/s leave ")
    assert plain.startswith("without: 255 launches, 1.52 times the floor of 2,249 MB; ")


@pytest.mark.parametrize(("operators", "times"), [(FUSED, 1), (PLAIN, 3)], ids=["fused", "plain"])
def test_a_step_reads_each_weight_once_and_keys_and_values_once_or_thrice(operators: Operators, times: int) -> None:
    shape = ModelShape(layers=2, width=256, heads=8, kv_heads=4, hidden=512)
    with torch.device("meta"):
        matrices = sum(each.numel() for layer in Decoder(shape).layers for each in layer.parameters() if each.dim() > 1)

    def moved(held: int) -> Counter[str]:
        return estimate(shape, operators, Decode(batch=4, held=held, block_size=16), 1.0).moved

    few, many = moved(64), moved(128)
    assert 0 < few["linear"] + few["addmm_"] - 2 * (matrices + VOCABULARY * 256) < 80_000, "and what they multiply"
    assert few["linear"] == many["linear"]
    held = 64 * 4 * 2 * 2 * 4 * 32 * 2  # tokens, sequences, layers, keys and values, heads of 32, two bytes each
    others = many.total() - few.total() - times * held  # a longer block table, and a mask where there is one
    assert 0 < others < (1000 if operators is FUSED else 0.1 * held)
