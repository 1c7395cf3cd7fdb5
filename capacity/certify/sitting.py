"""One sitting of a certification: the search, the server it asks about, and the account that outlives both."""

import asyncio
from collections.abc import Callable

from capacity.certify.account import Account
from capacity.certify.endpoint import Endpoint
from capacity.certify.search import Outcome, Search
from capacity.certify.trial import Answer, Ask, AskAlone, AskRun


async def sit(endpoint: Endpoint, account: Account, going: Search, *, on_kept: Callable[[], None]) -> Outcome:
    """Search until there is an outcome, keeping everything that is heard; `on_kept` is told after each run."""
    ask = next(going)
    try:
        while True:
            if _is_another(account, ask):
                await _end_run(endpoint, account, on_kept)
            ask = going.send(await _answer(endpoint, account, ask))
    except StopIteration as end:
        await _end_run(endpoint, account, on_kept)
        outcome: Outcome = end.value
        return outcome
    except asyncio.CancelledError:
        await endpoint.end_run()
        account.open_run = None
        raise


def _is_another(account: Account, ask: Ask) -> bool:
    open_run = account.open_run
    return open_run is not None and not (isinstance(ask, AskRun) and open_run.ask["number"] == ask.number)


async def _end_run(endpoint: Endpoint, account: Account, on_kept: Callable[[], None]) -> None:
    facts = await endpoint.end_run()
    if facts is not None:
        account.over(facts.as_json())
        on_kept()


async def _answer(endpoint: Endpoint, account: Account, ask: Ask) -> Answer:
    answer = account.recall(ask)
    if answer is not None:
        endpoint.remember(answer, account.calm_s)
        return answer
    answer = await endpoint.answer(ask)
    account.hear(ask, answer)
    if isinstance(ask, AskAlone):
        account.calm_s, account.alone.facts = endpoint.calm_s, endpoint.alone_facts()
    return answer
