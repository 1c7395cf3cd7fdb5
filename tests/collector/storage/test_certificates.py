"""Which certificate of a service counts: on real databases."""

import asyncio
import json
from typing import Any

from collector import schema
from collector.storage.certificates import certified_rps
from tests.collector.stores import added, store


def row(at_s: int, rps: float | None, *, kind: str = "certify", service: str = "chat", **more: str) -> tuple[Any, ...]:
    environment, target = more.get("environment", ""), more.get("target", "http://a")
    figures = (rps, None, None, None, None, None, None, None, None)
    whose = at_s, environment, service, more.get("model", "m"), kind, target
    return (*whose, "certified", "ttft", *figures, more.get("result", "{}"))


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
        rates = {whose: one.rps for whose, one in found.items()}
        assert rates == {("", "chat"): 3.0, ("", "search"): 5.0, ("prod", "chat"): 4.0}

    asyncio.run(story())


def test_what_was_promised_then_comes_with_it(database: str) -> None:
    objective = {"name": "ttft", "signal": "ttft", "percentile": "0.95", "threshold": "1"}
    said = json.dumps({"settings": {"spec": "x", "model": "m", "class": None, "objectives": [objective]}})

    async def story() -> None:
        async with store(database) as one:
            rows = [row(60, 9.0, result=said), row(60, 5.0, service="search", result="no JSON")]
            await one.write(lambda connection: added(connection, schema.capacity_result, rows))
            found = await one.read(certified_rps)
        promised = found["", "chat"].promised
        assert promised is not None
        assert [one.text for one in promised.promises] == ["95% within 1s"]
        assert found["", "search"].promised is None

    asyncio.run(story())
