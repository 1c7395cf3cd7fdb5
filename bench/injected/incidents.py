"""What goes wrong: kinds with the causes that are right for them, and the incidents that seeds draw of each.

An incident is a fault of the demo server, a change of what users ask for, or a server that is away; with a background,
what users ask for changes by a half at the very moment that the fault begins, up or down, which is no cause but looks
like one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

BASE_RPS = 4.0
USUAL_WORDS, LONG_WORDS = (6, 12), (60, 70)
MORE, LESS = 1.5, 0.6


@dataclass(frozen=True, slots=True)
class Users:
    """What users ask for: requests a second, words of a prompt from and to."""

    rate_rps: float = BASE_RPS
    words: tuple[int, int] = USUAL_WORDS


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to go wrong. `right` is the cause that it is; `is_fault`: of the server's own, and so one of those that
    the promise is about."""

    name: str
    right: str
    draw: Callable[[Random], "Trouble"]
    is_fault: bool = True


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is done: faults of the demo server, what users ask for, and whether the server can be reached."""

    fault: Mapping[str, object] = field(default_factory=dict)
    users: Users = field(default_factory=Users)
    is_away: bool = False


@dataclass(frozen=True, slots=True)
class Incident:
    """One of them: `background` is by how much the usual load changes with it."""

    kind: Kind
    seed: int
    background: float
    trouble: Trouble

    @property
    def users(self) -> Users:
        """What users ask for meanwhile."""
        asked = self.trouble.users
        return Users(asked.rate_rps * self.background, asked.words)

    @property
    def name(self) -> str:
        change = "" if self.background == 1 else f", load x {self.background:g}"
        return f"{self.kind.name} {self.seed}{change}"


def _even(low: float, high: float) -> Callable[[Random], float]:
    return lambda chance: round(chance.uniform(low, high), 2)


def _fault(name: str, draw: Callable[[Random], object]) -> Callable[[Random], Trouble]:
    return lambda chance: Trouble({name: draw(chance)})


KINDS = (
    Kind("slow", "decode_slower", _fault("slow", _even(3.5, 8.0))),
    Kind("hang", "engine_hung", _fault("hang", lambda _: True)),
    Kind("kv_pressure", "kv_pressure", _fault("kv_pressure", _even(0.8, 0.95))),
    Kind("errors", "errors", _fault("errors", _even(0.3, 0.9))),
    Kind("queue", "admission", _fault("queue", lambda _: True)),
    Kind("traffic", "traffic", lambda chance: Trouble(users=Users(_even(14, 18)(chance))), is_fault=False),
    Kind("long prompts", "long_prompts", lambda _: Trouble(users=Users(words=LONG_WORDS)), is_fault=False),
    Kind("away", "unreachable", lambda _: Trouble(is_away=True), is_fault=False),
)
NO_FAULT: Mapping[str, object] = {"slow": 1.0, "hang": False, "kv_pressure": 0.0, "errors": 0.0, "queue": False}


def incidents(kinds: tuple[Kind, ...], seeds: Sequence[int]) -> list[Incident]:
    """Every kind with every seed: the server's own faults with a background and without. Kinds alternate, so that what
    disturbs the machine for a while disturbs them alike."""
    found = []
    for seed in seeds:
        for background in (1.0, MORE if seed % 2 else LESS):
            for kind in kinds:
                if kind.is_fault or background == 1.0:
                    chance = Random(f"{kind.name}/{seed}/{background}")
                    found.append(Incident(kind, seed, background, kind.draw(chance)))
    return found
