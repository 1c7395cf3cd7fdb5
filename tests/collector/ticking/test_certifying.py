"""What services are certified for, read beside the ticks."""

import asyncio

import pytest

from collector import schema
from collector.errors import UnavailableError
from collector.keeping.store import Store
from collector.ticking.certifying import Certifying
from tests.collector.storage.test_certificates import row
from tests.collector.stores import NOW_S, added, store


async def asked(certifying: Certifying, now_s: int) -> dict[tuple[str, str], float]:
    certifying.observe(now_s)
    await certifying.settled()
    return {whose: one.rps for whose, one in certifying.certified_rps.items()}


async def certify(one: Store, at_s: int, rps: float) -> None:
    await one.write(lambda connection: added(connection, schema.capacity_result, [row(at_s, rps)]))


def test_it_is_asked_once_a_minute(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            certifying = Certifying(one)
            await certify(one, 60, 9.0)
            assert await asked(certifying, NOW_S) == {("", "chat"): 9.0}
            await certify(one, 120, 8.0)
            assert await asked(certifying, NOW_S + 50) == {("", "chat"): 9.0}
            assert await asked(certifying, NOW_S + 60) == {("", "chat"): 8.0}

    asyncio.run(story())


def test_what_was_known_stands_while_the_database_is_away(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: object) -> None:
        raise UnavailableError("gone")

    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            certifying = Certifying(one)
            await certify(one, 60, 9.0)
            await asked(certifying, NOW_S)
            monkeypatch.setattr(one, "read", away)
            assert await asked(certifying, NOW_S + 60) == {("", "chat"): 9.0}

    asyncio.run(story())
