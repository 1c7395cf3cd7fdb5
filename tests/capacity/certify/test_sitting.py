"""A search that is broken off and taken up again asks for nothing twice and ends as one that was not."""

import asyncio

import numpy as np
import pytest

from capacity.certify.account import Account
from capacity.certify.facts import Facts, facts
from capacity.certify.judge import Rigour
from capacity.certify.search import search
from capacity.certify.sitting import sit
from capacity.certify.trial import Answer, Ask, AskAlone, AskFlood, AskRun, Ceiling, Goal, Seen
from capacity.record import Record

GOALS = (Goal("ttft", 0.05),)
RIGOUR = Rigour(most_requests=3200)


class Scripted:
    """Answers as an endpoint does: good up to 7 requests a second; broken off when that run is asked for."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.asked: list[Ask] = []
        self.calm_s = 0.5
        self.remembered: list[Answer] = []
        self._breaks_at = breaks_at
        self._goes = False

    async def answer(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        if isinstance(ask, AskFlood):
            return Ceiling(10.0, 0.0, 4.0)
        if isinstance(ask, AskRun):
            if ask.number == self._breaks_at:
                raise asyncio.CancelledError
            self._goes = True
        bad = int(isinstance(ask, AskRun) and ask.rate_rps > 7)
        return Seen((np.full(ask.requests, bad, dtype=np.int8),), ask.requests / 10, 1.0)

    async def end_run(self) -> Facts | None:
        going, self._goes = self._goes, False
        return facts("t", [Record("m", 0.0, 1.0, "ok")], 0, 2) if going else None

    def alone_facts(self) -> dict[str, object]:
        return {"summary": {}}

    def remember(self, answer: Answer, calm_s: float) -> None:
        self.remembered.append(answer)
        assert calm_s == self.calm_s


def numbers(asked: list[Ask]) -> list[int]:
    return [ask.number for ask in asked if isinstance(ask, AskRun)]


@pytest.mark.anyio
async def test_a_broken_search_goes_on_where_it_was() -> None:
    whole, kept = Account(), []
    one_sitting = Scripted()
    expected = await sit(one_sitting, whole, search(GOALS, RIGOUR), on_kept=lambda: kept.append(len(whole.runs)))
    assert expected.certified is not None
    assert kept == list(range(1, len(kept) + 1))
    assert set(whole.runs) == set(numbers(one_sitting.asked))
    assert whole.alone.facts == one_sitting.alone_facts()

    heard, first, second = Account(), Scripted(breaks_at=3), Scripted()
    with pytest.raises(asyncio.CancelledError):
        await sit(first, heard, search(GOALS, RIGOUR), on_kept=lambda: None)
    assert set(heard.runs) == {1, 2}
    found = await sit(second, heard, search(GOALS, RIGOUR), on_kept=lambda: None)
    assert [(probe.rate_rps, probe.state) for probe in found.probes] == [
        (probe.rate_rps, probe.state) for probe in expected.probes
    ]
    assert min(numbers(second.asked)) == 3
    assert not any(isinstance(ask, AskAlone | AskFlood) for ask in second.asked)
    assert any(isinstance(answer, Ceiling) for answer in second.remembered)
