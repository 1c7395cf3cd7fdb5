"""Requests that come at random, share beginnings, are cut, preempted and resumed: for runners of every kind."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from demo_server.blocks import BlockPool
from demo_server.model import ModelShape
from demo_server.runner import ModelRunner
from demo_server.scheduler import Chunk, Policy, Scheduler, Step
from demo_server.sequence import Sampling, Sequence

SHAPE = ModelShape(layers=2, width=64, heads=4, kv_heads=2, hidden=96, max_positions=128)
BLOCK = 4
REQUESTS = 12

Watch = Callable[[Step], None]


@dataclass(slots=True)
class Storm:
    """What came of one: every sequence at its end, and how much happened on the way."""

    done: list[Sequence] = field(default_factory=list)
    preempted: int = 0
    reused: int = 0
    free: int = 0


def storm(
    runner: ModelRunner,
    seed: int,
    *,
    blocks: int,
    budget: int,
    is_sampled: bool = False,
    watch: Watch = lambda _step: None,
) -> Storm:
    """Serve a dozen requests to their ends, greedy or each in a way of its own; `watch` is called after every step."""
    chance = random.Random(seed)
    scheduler = Scheduler(BlockPool(blocks, BLOCK), Policy(max_batch=6, token_budget=budget))
    beginnings = [[chance.randrange(256) for _ in range(length)] for length in (0, 4, 9, 13)]
    alive: dict[int, Sequence] = {}
    seen = Storm()
    to_come = REQUESTS
    while to_come or alive:
        for _ in range(min(to_come, chance.choice([0, 0, 1, 3]))):
            to_come -= 1
            own = [chance.randrange(256) for _ in range(chance.randint(1, 8))]
            prompt = chance.choice(beginnings) + own
            sequence = Sequence(to_come, prompt, sampling(chance) if is_sampled else Sampling(chance.randint(2, 24)))
            alive[sequence.id] = sequence
            scheduler.add(sequence)
        step = scheduler.plan()
        seen.preempted += len(step.preempted)
        seen.reused += sum(step.reused)
        tokens = runner.begin(step, alive)()
        watch(step)
        assert set(tokens) == {
            chunk.sequence_id for chunk in step.chunks if chunk.count == alive[chunk.sequence_id].uncomputed
        }
        for chunk in step.chunks:
            alive[chunk.sequence_id].advance(chunk.count)
        for sequence_id, token in tokens.items():
            sequence = alive[sequence_id]
            sequence.append(token)
            left_early = chance.random() < 0.01
            if sequence.output_tokens == sequence.sampling.max_tokens or left_early:
                scheduler.finish(sequence)
                seen.done.append(alive.pop(sequence_id))
    seen.free = scheduler.pool.free
    return seen


def sampling(chance: random.Random) -> Sampling:
    """Any way to choose tokens, greedy among them."""
    return Sampling(
        max_tokens=chance.randint(2, 24),
        temperature=chance.choice([0.0, 0.7, 1.0, 1.6]),
        top_p=chance.choice([1.0, 0.9, 0.4]),
        seed=chance.choice([None, chance.randrange(2**32)]),
        ignore_eos=chance.random() < 0.5,
    )


def alone(runner: ModelRunner, like: Sequence) -> list[int]:
    """The tokens that the same request gets, with as many to come, when nobody shares its batch, cut or cache."""
    sequence = Sequence(like.id, like.tokens[: like.prompt_tokens], like.sampling)
    sequence.blocks = list(range(-(-len(like) // BLOCK)))
    while len(sequence) < len(like):
        chunk = Chunk(sequence.id, sequence.computed, sequence.uncomputed)
        (token,) = runner.begin(Step((chunk,)), {sequence.id: sequence})().values()
        sequence.advance(chunk.count)
        sequence.append(token)
    return sequence.tokens
