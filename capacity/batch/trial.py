"""What the search asks of the world, and what it hears: the values between it and whoever turns the knob.

A run goes on while the search asks for more of it: the same ask with more requests. What is heard of a run is every
series from its first request on.
"""

from dataclasses import dataclass
from typing import Literal

from capacity.batch.fit import Mix
from capacity.certify.evidence import Series

MixName = Literal["stated", "short prompts", "short answers"]


@dataclass(frozen=True, slots=True)
class AskHeld:
    """Exactly `batch` requests outstanding on a server that may run as many, until `requests` have ended."""

    batch: int
    mix: MixName
    requests: int


@dataclass(frozen=True, slots=True)
class AskOpen:
    """Open-loop load at a rate on a server that may run `batch` at once, until `requests` are judged."""

    batch: int
    rate_rps: float
    requests: int


Ask = AskHeld | AskOpen


@dataclass(frozen=True, slots=True)
class Held:
    """A server held full. `tails`: for each goal, the step that its share of requests stays within, seconds; `bad`: a
    series for each goal. `rate_rps` is how many requests a second it answered well."""

    mix: Mix
    step_s: float
    tails: tuple[float, ...]
    bad: tuple[Series, ...]
    rate_rps: float
    seconds: float
    is_client_late: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A server under open-loop load: a series for each goal."""

    bad: tuple[Series, ...]
    seconds: float
    is_client_late: bool = False


Answer = Held | Opened
