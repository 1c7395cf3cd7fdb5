"""The rows of `alert_cause`: one for each time that an alert pended or fired, and what of it is still said."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from collector import schema
from collector.judging.cause import Cause
from collector.storage import causes, commit
from collector.storage.causes import Finding
from collector.values.alerting import Alert, AlertKey, with_cause
from tests.collector.stores import NOW_S, store

KEY = AlertKey("LLMTTFTBudgetBurn", "", "chat", "*", "ttft", "fast")
CAUSE = Cause("decode_slower", 0.9, ("time per token 60 ms, before 20 ms",), "i1")
FOUND = Finding(KEY, NOW_S, NOW_S + 10, CAUSE, 300, NOW_S - 600)
FIRING = Alert(KEY, "firing", NOW_S, NOW_S, (("notify", "page"),), (("summary", "S."),))


def done(database: str, *works: Callable[[Connection], Any]) -> list[Any]:
    async def story() -> list[Any]:
        async with store(database) as one:
            return [await one.write(work) for work in works]

    return asyncio.run(story())


def kept(*alerts: Alert) -> Callable[[Connection], None]:
    return lambda connection: commit.write_alerts(connection, alerts, ())


def rows(connection: Connection) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(select(schema.alert_cause).order_by(schema.alert_cause.c.since_s))]


def test_a_cause_is_kept_as_it_is_now_and_comes_back(database: str) -> None:
    later = replace(FOUND, at_s=NOW_S + 60, cause=replace(CAUSE, confidence=1.0))
    *_, stored, found = done(
        database,
        kept(with_cause(FIRING, CAUSE.text)),
        lambda c: causes.write(c, [FOUND]),
        lambda c: causes.write(c, [later]),
        lambda c: causes.write(c, []),
        rows,
        causes.latest,
    )
    said = '["time per token 60 ms, before 20 ms"]'
    key = (NOW_S, "", "chat", KEY.name, "*", "ttft", "fast")
    assert stored == [(*key, NOW_S + 60, "decode_slower", 1.0, "i1", said, 300, NOW_S - 600)]
    assert found == {KEY: later}


def test_only_what_an_alert_says_of_itself_now_is_its_cause(database: str) -> None:
    """A row of an earlier time is not taken for one of now: the alert that began again has no cause yet."""
    other, over = replace(KEY, model="m"), replace(KEY, tier="slow")
    *_, found = done(
        database,
        kept(
            FIRING,
            with_cause(replace(FIRING, key=other), "t"),
            with_cause(replace(FIRING, key=over, state="resolved"), "t"),
        ),
        lambda c: causes.write(c, [replace(FOUND, since_s=NOW_S - 9000)]),
        lambda c: causes.write(c, [replace(FOUND, key=key, since_s=at) for key in (other, over) for at in (1, NOW_S)]),
        causes.latest,
    )
    assert found == {other: replace(FOUND, key=other)}


def test_rows_of_alerts_are_told_with_their_causes() -> None:
    row = {"environment": "", "service": "chat", "name": KEY.name, "model": "*", "objective": "ttft", "tier": "fast"}
    with_it, without = causes.told([row, row | {"tier": "slow"}], {KEY: FOUND})
    assert with_it["cause"] == {
        "kind": "decode_slower",
        "confidence": 0.9,
        "instance": "i1",
        "evidence": ["time per token 60 ms, before 20 ms"],
        "at_s": NOW_S + 10,
        "before_s": NOW_S - 600,
    }
    assert without["cause"] is None
