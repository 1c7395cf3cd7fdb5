"""Faults that can be switched on while the server runs, as one frozen value, and the arithmetic they need.

Chance is seeded: the same requests in the same order meet the same faults.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from demo_server.errors import BadRequestError

# A fault-free step of the small model may take a millisecond; N times that would be a slowdown nobody sees.
SLOW_BASE_S = 0.005
MAX_SLOW = 1000.0
MAX_SHOWN_CHARS = 80
# An injected break comes within this many tokens, so that it lands inside most answers.
MAX_TOKENS_BEFORE_BREAK = 8


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong on purpose. The defaults are a healthy server."""

    slow: float = 1.0  # every step takes this many times as long
    hang: bool = False  # no step is made; requests are accepted and wait
    kv_pressure: float = 0.0  # share of the KV blocks nobody gets
    errors: float = 0.0  # share of requests that fail: half at once, half after some tokens
    queue: bool = False  # admission lets at most one sequence run

    def as_json(self) -> dict[str, float | bool]:
        """The object that the admin route shows and takes."""
        return asdict(self)


HEALTHY = Faults()
_NAMES = tuple(field.name for field in fields(Faults))


def changed(current: Faults, patch: Mapping[str, object]) -> Faults:
    """`current` with the named faults set, the others as they were. Raises BadRequestError if any is wrong."""
    for name in patch:
        if name not in _NAMES:
            raise BadRequestError(f"unknown fault {_shown(name)}; known are {', '.join(_NAMES)}", param=str(name))
    values: dict[str, float | bool] = {}
    for name, value in patch.items():
        if name in {"hang", "queue"}:
            values[name] = _switch(name, value)
        elif name == "slow":
            values[name] = _number(name, value, 1.0, MAX_SLOW)
        else:
            values[name] = _number(name, value, 0.0, 1.0)
    return replace(current, **values)  # type: ignore[arg-type]  # each name was given its own type above


def step_target_s(faults: Faults, *, measured_s: float, floor_s: float) -> float:
    """How long a step that computed for `measured_s` shall take in all, given the least a step may take."""
    target_s = max(measured_s, floor_s)
    if faults.slow > 1.0:
        target_s = max(target_s, SLOW_BASE_S) * faults.slow
    return target_s


def withheld_blocks(faults: Faults, total: int) -> int:
    """How many of `total` KV blocks are taken away."""
    return math.floor(faults.kv_pressure * total)


@dataclass(frozen=True, slots=True)
class Mishap:
    """What an injected error does to one request: refuses it, or breaks it after `after_tokens`."""

    after_tokens: int | None


class ErrorDice:
    """Decides which requests fail while `errors` is up."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def throw(self, rate: float) -> Mishap | None:
        """The fate of the next request. Rate 0 throws nothing, so a healthy hour does not shift a later one."""
        if rate <= 0:
            return None
        chance = self._random.random()
        if chance >= rate:
            return None
        if chance < rate / 2:
            return Mishap(None)
        return Mishap(self._random.randint(1, MAX_TOKENS_BEFORE_BREAK))


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadRequestError(f"{name} is {_shown(value)}; it must be true or false", param=name)
    return value


def _number(name: str, value: object, low: float, high: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not good:
        raise BadRequestError(f"{name} is {_shown(value)}; it must be a number from {low:g} to {high:g}", param=name)
    assert isinstance(value, int | float)
    return float(value)


def _shown(value: object) -> str:
    """A stranger's value in a message: its beginning is enough."""
    return f"{value!r:.{MAX_SHOWN_CHARS}}"
