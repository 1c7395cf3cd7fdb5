"""A model of an engine, step by step: what its figures are while something goes wrong with it. Seeded, pure.

Continuous batching as everybody does it: a step takes a fixed time and a little more for each sequence; requests come
by chance, wait for a place and for memory, and leave after their last token.
"""

from dataclasses import dataclass, field, replace
from random import Random

from collector.judging.evidence import Evidence

SETTLES_S, HALVES_S = 10.0, 25.0
PREFILL_S = 2e-5
"""Of each token of a prompt."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine and its users. `factor` is how many times as long a step takes."""

    rate: float = 5.0
    in_tokens: float = 300.0
    out_tokens: float = 25.0
    batch: int = 16
    step_s: float = 0.04
    step_of_each_s: float = 0.001
    kv_tokens: float = 12_000.0
    withheld: float = 0.0
    factor: float = 1.0
    hangs: bool = False
    fails: float = 0.0
    away: bool = False
    delay_s: float = 0.0
    """What clients add to each token."""
    throttled: float | None = None


@dataclass(slots=True)
class _Request:
    came_s: float
    prompt: float
    answer: int
    given: int = 0
    first_s: float | None = None


@dataclass(slots=True)
class _Watched:
    """What one half saw."""

    came: int = 0
    ttft: list[float] = field(default_factory=list)
    tpot: list[float] = field(default_factory=list)
    prompts: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    occupied: list[float] = field(default_factory=list)
    failed: int = 0
    age_s: float = 0.0
    ages_s: list[float] = field(default_factory=list)


def halves(before: Engine, during: Engine, seed: int) -> tuple[Evidence, Evidence]:
    """The evidence of before and of during, one right after the other."""
    chance, found = Random(seed), []
    running: list[_Request] = []
    waiting: list[_Request] = []
    now_s = 0.0
    for engine, length_s in ((before, SETTLES_S), (before, HALVES_S), (during, HALVES_S)):
        seen, until_s, token_s = _Watched(), now_s + length_s, now_s
        while now_s < until_s:
            step_s = (engine.step_s + engine.step_of_each_s * len(running)) * engine.factor
            for _ in range(_poisson(engine.rate * step_s, chance)):
                seen.came += 1
                if engine.away or chance.random() < engine.fails:
                    seen.failed += 1
                    continue
                prompt = engine.in_tokens * chance.lognormvariate(0, 0.4)
                waiting.append(
                    _Request(now_s, prompt, max(2, round(engine.out_tokens * chance.lognormvariate(0, 0.3))))
                )
            now_s += step_s
            if not engine.hangs:
                _admit(engine, running, waiting)
                token_s = now_s if running or not waiting else token_s
                now_s += sum(one.prompt for one in running if one.given == 0) * PREFILL_S
                _give(running, now_s, seen)
            elif not running and not waiting:
                token_s = now_s
            seen.age_s = now_s - token_s
            seen.ages_s.append(seen.age_s + step_s / 2)
            seen.running.append(len(running))
            seen.waiting.append(len(waiting))
            seen.occupied.append(min(_held(running) / engine.kv_tokens + engine.withheld, 1.0))
        found.append(_evidence(engine, seen))
    return found[1], found[2]


def _admit(engine: Engine, running: list[_Request], waiting: list[_Request]) -> None:
    room = engine.kv_tokens * (1 - engine.withheld)
    while waiting and len(running) < engine.batch:
        if running and _held(running) + waiting[0].prompt + 64 > 0.95 * room:
            break
        running.append(waiting.pop(0))


def _give(running: list[_Request], now_s: float, seen: _Watched) -> None:
    """A token for each that runs."""
    for one in running[:]:
        one.given += 1
        if one.first_s is None:
            one.first_s = now_s
            seen.ttft.append(now_s - one.came_s)
        if one.given >= one.answer:
            running.remove(one)
            seen.tpot.append((now_s - one.first_s) / (one.given - 1))
            seen.prompts.append(one.prompt)
            seen.answers.append(one.answer)


def _held(running: list[_Request]) -> float:
    return sum(one.prompt + one.given for one in running)


def _evidence(engine: Engine, seen: _Watched) -> Evidence:
    mean = _mean(seen.tpot)
    ended = len(seen.tpot) + seen.failed
    return Evidence(
        came=seen.came,
        arrivals=seen.came / HALVES_S,
        in_tokens=_mean(seen.prompts),
        out_tokens=_mean(seen.answers),
        ttft_s=_mean(seen.ttft),
        tpot_s=None if mean is None else mean + engine.delay_s,
        answers=len(seen.tpot),
        engine_tpot_s=mean,
        engine_answers=len(seen.tpot),
        running=None if engine.away else _mean(seen.running),
        waiting=None if engine.away else _mean(seen.waiting),
        unstarted=_mean(seen.waiting),
        preemptions=0.0,
        kv_occupancy=None if engine.away else _mean(seen.occupied),
        failed=seen.failed / ended if ended else None,
        refused=0.0 if ended else None,
        token_age_s=seen.age_s,
        longest_gap_s=max(seen.ages_s),
        token_gap_s=_mean(seen.ages_s),
        throttled=engine.throttled,
        heard=0.1 if engine.away else 1.0,
        unheard_s=20.0 if engine.away else 0.0,
    )


def _mean(values: list[float] | list[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _poisson(mean: float, chance: Random) -> int:
    count, at = 0, chance.expovariate(1.0)
    while at < mean:
        count, at = count + 1, at + chance.expovariate(1.0)
    return count


def busier(engine: Engine, times: float) -> Engine:
    """The same engine with so many times the requests."""
    return replace(engine, rate=engine.rate * times)
