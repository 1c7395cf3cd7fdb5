"""What a search has heard, kept so that an interrupted one can be told it again, and that anyone can judge it anew.

A run is kept once it is over: its series, and of each look at it the time it had taken. The pure search asks the same
questions again when it hears the same answers, so recalling them brings it to where it was.
"""

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field

from capacity.certify.trial import (
    Answer,
    Ask,
    AskAlone,
    AskFlood,
    AskRun,
    Ceiling,
    Seen,
    as_series,
    as_text,
)
from capacity.errors import WorkloadError


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a run while it goes on: how many requests were judged by then, after how many seconds, and how many
    were in the system on average."""

    requests: int
    seconds: float
    at_once: float
    is_client_late: bool


@dataclass(slots=True)
class Kept:
    """A series of requests for each objective, all looks at them, and the run's facts."""

    ask: Mapping[str, object]
    bad: tuple[str, ...] = ()
    looks: list[Look] = field(default_factory=list)
    facts: Mapping[str, object] = field(default_factory=dict)

    def hear(self, seen: Seen) -> None:
        self.bad = tuple(as_text(series) for series in seen.bad)
        self.looks.append(Look(seen.requests, seen.seconds, seen.at_once, seen.is_client_late))

    def as_json(self) -> dict[str, object]:
        """A look is a list there: its fields in their order."""
        return {**asdict(self), "looks": [astuple(look) for look in self.looks]}

    def recall(self, requests: int) -> Seen | None:
        for look in self.looks:
            if look.requests == requests:
                series = tuple(as_series(text[:requests]) for text in self.bad)
                return Seen(series, look.seconds, look.at_once, look.is_client_late)
        return None


@dataclass(slots=True)
class Account:
    """Everything heard so far. `open_run` is the one that may still go on."""

    alone: Kept = field(default_factory=lambda: Kept({}))
    ceiling: Ceiling | None = None
    runs: dict[int, Kept] = field(default_factory=dict)
    open_run: Kept | None = None
    calm_s: float = 0.0

    def recall(self, ask: Ask) -> Answer | None:
        """What was heard of this before; None if nothing was."""
        if isinstance(ask, AskFlood):
            return self.ceiling
        if isinstance(ask, AskAlone):
            return self.alone.recall(ask.requests)
        kept = self.runs.get(ask.number)
        return None if kept is None else kept.recall(ask.requests)

    def hear(self, ask: Ask, answer: Answer) -> None:
        """Keep an answer; of a run only for as long as it goes on, until it is `over`."""
        if isinstance(answer, Ceiling):
            self.ceiling = answer
        elif isinstance(ask, AskRun):
            if self.open_run is None:
                asked = {"number": ask.number, "rate_rps": ask.rate_rps, "start": ask.start}
                self.open_run = Kept({**asked, "variation": ask.variation})
            self.open_run.hear(answer)
        else:
            self.alone.hear(answer)

    def over(self, facts: Mapping[str, object]) -> None:
        """The run is over: keep it for good."""
        if self.open_run is not None:
            self.open_run.facts = facts
            number = self.open_run.ask["number"]
            assert isinstance(number, int)
            self.runs[number], self.open_run = self.open_run, None

    def as_json(self) -> dict[str, object]:
        return {
            "calm_s": self.calm_s,
            "alone": self.alone.as_json(),
            "ceiling": None if self.ceiling is None else asdict(self.ceiling),
            "runs": [kept.as_json() for kept in self.runs.values()],
        }


def account(heard: object) -> Account:
    """The account that such JSON holds. Raises WorkloadError where it does not."""
    try:
        assert isinstance(heard, dict)
        ceiling = None if heard["ceiling"] is None else Ceiling(**heard["ceiling"])
        runs = {run["ask"]["number"]: _kept(run) for run in heard["runs"]}
        return Account(_kept(heard["alone"]), ceiling, runs, None, float(heard["calm_s"]))
    except (AssertionError, KeyError, TypeError, ValueError):
        raise WorkloadError("the result to resume holds no account of what was heard: begin anew") from None


def _kept(read: Mapping[str, object]) -> Kept:
    bad, looks, ask, facts = read["bad"], read["looks"], read["ask"], read["facts"]
    assert isinstance(bad, list)
    assert isinstance(looks, list)
    assert isinstance(ask, dict)
    assert isinstance(facts, dict)
    heard = [Look(int(n), float(s), float(c), bool(late)) for n, s, c, late in looks]
    return Kept(ask, tuple(map(str, bad)), heard, facts)
