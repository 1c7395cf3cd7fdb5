"""How long requests wait for a place in the batch, predicted: a queue whose server grows slower by step, not by place.

With n sequences running a step takes s(n), and each ends after m steps on average, so n of them end at the rate
n / (m s(n)); at most B run and the others wait. Arrivals and lengths taken as exponential, this is a birth-death
process: p_n / p_(n-1) = x / rate_n, geometric with r = x / rate_B from B on, and a wait exceeds t with the chance
p_B / (1 - r) * exp(-(rate_B - x) t). Only a prediction: where to probe, never a verdict.
"""

import math
from collections.abc import Callable

StepOf = Callable[[float], float]


def wait_share(rate_rps: float, batch: int, step_s: StepOf, steps: float, wait_s: float) -> float:
    """The share of requests that wait longer than `wait_s` at a rate; 1 where the server cannot keep up."""

    def ends_rps(running: int) -> float:
        return running / (steps * step_s(running))

    full = ends_rps(batch)
    if wait_s <= 0 or rate_rps >= full:
        return 1.0
    # Kept as logarithms: with many places the weights span more than a float does.
    logs = [0.0]
    for running in range(1, batch + 1):
        logs.append(logs[-1] + math.log(rate_rps / ends_rps(running)))
    most = max(logs)
    tail = math.exp(logs[-1] - most) / (1 - rate_rps / full)
    whole = sum(math.exp(log - most) for log in logs[:-1]) + tail
    return tail / whole * math.exp(-(full - rate_rps) * wait_s)
