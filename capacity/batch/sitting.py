"""One sitting: the search, the server it asks about, and every run that came of it; then the knob is turned back."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from capacity.batch.search import Outcome, Plan, search
from capacity.batch.server import Server
from capacity.batch.trial import Answer, Ask, AskHeld, Held
from capacity.certify.evidence import NO_EVENT, Series
from capacity.errors import CapacityError, UnreachableError


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it was last heard of."""

    ask: Ask
    answer: Answer

    def as_json(self) -> dict[str, object]:
        seen: dict[str, object] = {
            "kind": "held" if isinstance(self.ask, AskHeld) else "open",
            **asdict(self.ask),
            "seconds": round(self.answer.seconds, 3),
            "bad": [int((one == 1).sum()) for one in self.answer.bad],
            "events": [_events(one) for one in self.answer.bad],
            "is_client_late": self.answer.is_client_late,
        }
        if isinstance(self.answer, Held):
            seen |= {"step_s": self.answer.step_s, "tail_s": self.answer.tails, "ends_rps": self.answer.rate_rps}
        return seen


@dataclass(slots=True)
class Account:
    """Every run so far, the last of which may still go on."""

    runs: list[Run] = field(default_factory=list)

    def hear(self, ask: Ask, answer: Answer) -> bool:
        """Keep an answer in the place of a shorter one of the same run; whether the run is new."""
        goes_on = bool(self.runs) and is_more(self.runs[-1].ask, ask)
        if goes_on:
            self.runs.pop()
        self.runs.append(Run(ask, answer))
        return not goes_on


@dataclass(frozen=True, slots=True)
class Ended:
    """A sitting that is over: its outcome, None if it was cancelled, and why the server could not be turned back, if
    so."""

    outcome: Outcome | None
    not_back: CapacityError | None = None


OnAsk = Callable[[Ask, Account], None]


async def sit(server: Server, plan: Plan, account: Account, *, on_ask: OnAsk, on_kept: Callable[[], None]) -> Outcome:
    """Search until there is an outcome; `on_ask` is told before each run, `on_kept` after each answer."""
    await server.begin()
    going = search(plan)
    ask = next(going)
    while True:
        on_ask(ask, account)
        answer = await server.answer(ask)
        account.hear(ask, answer)
        on_kept()
        try:
            ask = going.send(answer)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome


async def turned_back(server: Server, sitting: "asyncio.Task[Outcome]", on_outcome: Callable[[Outcome], None]) -> Ended:
    """Let the sitting end, and turn the server back whatever came of it. An outcome is handed to `on_outcome` before,
    for turning back may take long, and fail. Raises what the sitting or `on_outcome` raises."""
    outcome: Outcome | None = None
    try:
        outcome = await sitting
        on_outcome(outcome)
    except asyncio.CancelledError:
        pass
    except Exception as error:
        not_back = await _turned_back(server, outcome)
        if not_back is not None and isinstance(error, CapacityError):
            raise UnreachableError(f"{error}; and the server's batch is not put back: {not_back}") from None
        raise
    return Ended(outcome, await _turned_back(server, outcome))


async def _turned_back(server: Server, outcome: Outcome | None) -> CapacityError | None:
    """Why the server could not be turned back, if so."""
    try:
        await server.turn_back(None if outcome is None else outcome.chosen)
    except CapacityError as error:
        return error
    return None


def is_more(one: Ask, other: Ask) -> bool:
    """Whether one ask goes on with the run of the other."""
    if isinstance(one, AskHeld) and isinstance(other, AskHeld):
        return (one.batch, one.mix) == (other.batch, other.mix)
    if isinstance(one, AskHeld) or isinstance(other, AskHeld):
        return False
    return (one.batch, one.rate_rps) == (other.batch, other.rate_rps)


def _events(series: Series) -> int:
    return int((series != NO_EVENT).sum())
