"""What receivers were told, in a real database."""

import asyncio

from collector.telling.notified import Notified
from collector.telling.webhook import Told
from tests.collector.stores import Clock, store


def test_what_a_receiver_was_told_outlives_the_process_and_is_its_own(database: str) -> None:
    async def story() -> None:
        async with store(database, clock=Clock()) as one:
            here, there = Notified(one, "http://a"), Notified(one, "http://b")
            assert await here.recall() == {}
            await here.remember({"page:x": Told("firing", 1), "": Told("resolved", 0)})
            await there.remember({"page:x": Told("firing", 7)})
            await here.remember({"page:x": Told("resolved", 2)})
        async with store(database, clock=Clock()) as one:
            assert await Notified(one, "http://a").recall() == {"page:x": Told("resolved", 2), "": Told("resolved", 0)}
            assert await Notified(one, "http://b").recall() == {"page:x": Told("firing", 7)}

    asyncio.run(story())
