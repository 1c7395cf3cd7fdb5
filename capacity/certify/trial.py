"""What the search asks of the world, and what it hears: the values between the pure search and whoever loads a server.

A run goes on while the search asks for more of it, by the same number with more requests; a request for another run
ends it. What is heard of a run is every series from its first request, so a longer answer holds every shorter one.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from capacity.certify.evidence import NO_EVENT, Series

Start = Literal["empty", "overload"]
Variation = Literal["stated", "shorter prompts", "longer prompts", "longer answers", "other prefix"]
"""The workload as it was stated, or another one that is near it."""
_LETTERS = {"0": 0, "1": 1, "-": NO_EVENT}


@dataclass(frozen=True, slots=True)
class Goal:
    """One objective's demand: at most a share `budget` of its requests bad.

    One that is only watched refutes a rate, but never holds back a certificate for lack of evidence.
    """

    name: str
    budget: float
    is_watched: bool = False


@dataclass(frozen=True, slots=True)
class AskAlone:
    """Requests one at a time, each sent when the last is answered; their answer is `Seen`."""

    requests: int


@dataclass(frozen=True, slots=True)
class AskFlood:
    """As many requests at once as the server can hold, to see at which rate it answers; the answer is a `Ceiling`."""


@dataclass(frozen=True, slots=True)
class AskRun:
    """Open-loop load at a rate until `requests` are judged: run `number`, or more of it."""

    number: int
    rate_rps: float
    start: Start
    requests: int
    variation: Variation = "stated"


Ask = AskAlone | AskFlood | AskRun


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A server under flood: answers a second, their standard error, and how many requests it worked on at once."""

    rate_rps: float
    error_rps: float
    at_once: float


@dataclass(frozen=True, slots=True)
class Seen:
    """A run so far: a series for each goal, how long it took, how many requests were in the system on average, and
    whether the client fell behind its own schedule."""

    bad: tuple[Series, ...]
    seconds: float
    at_once: float
    is_client_late: bool = False

    @property
    def requests(self) -> int:
        """How many requests are judged."""
        return self.bad[0].size


Answer = Seen | Ceiling


def as_text(series: Series) -> str:
    """A series as a letter a request: 1 bad, 0 good, - no event."""
    return "".join("-" if value == NO_EVENT else str(value) for value in series.tolist())


def as_series(text: str) -> Series:
    """The series that such a text writes. Raises KeyError for any other letter."""
    return np.array([_LETTERS[letter] for letter in text], dtype=np.int8)
