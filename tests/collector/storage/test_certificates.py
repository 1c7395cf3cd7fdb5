"""Which certificate of a service counts: on real databases."""

import asyncio
from typing import Any

from collector import schema
from collector.storage.certificates import certified_rps
from tests.collector.stores import added, store


def row(at_s: int, rps: float | None, *, kind: str = "certify", service: str = "chat", **more: str) -> tuple[Any, ...]:
    environment, target = more.get("environment", ""), more.get("target", "http://a")
    figures = (rps, None, None, None, None, None, None, None, None)
    return (at_s, environment, service, more.get("model", "m"), kind, target, "certified", "ttft", *figures, "{}")


def test_the_last_run_that_certified_a_rate_counts(database: str) -> None:
    rows = [
        row(60, 9.0),
        row(120, 3.5, model="n"),
        row(180, None),
        row(240, 7.0, kind="size"),
        row(60, 5.0, service="search"),
        row(30, 4.0, environment="prod"),
        row(120, 3.0, target="http://b"),
    ]

    async def story() -> None:
        async with store(database) as one:
            await one.write(lambda connection: added(connection, schema.capacity_result, rows))
            found = await one.read(certified_rps)
        # Of two runs that ended at the same moment the one that shows less.
        assert found == {("", "chat"): 3.0, ("", "search"): 5.0, ("prod", "chat"): 4.0}

    asyncio.run(story())
