"""The journal: what goes in comes out, in the order of the commits, and a gap is never overlooked."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, text

from collector.errors import GapError
from collector.folding.rollup import Intake, fold
from collector.storage import journal
from collector.storage.database import database_url, open_database
from collector.storage.journal import START, Entry, Mark
from collector.values.deltas import CounterRow, Deltas, InstanceRow, KnownRow, SloRow, StreamRow, concat
from collector.values.histogram import from_values
from collector.values.measurement import Tally
from tests.collector import exports, scene
from tests.collector.stores import NOW_S, batch

INTAKE = Intake(now_s=NOW_S, tick_s=10, oldest_s=NOW_S - 86400, since_s=NOW_S - 86400)


def one(number: int) -> Deltas:
    return Deltas(known=(KnownRow("", "chat", number),))


def entry(seq: int) -> Entry:
    return Entry(Mark(seq, 1000 + seq), one(seq))


def after(database: str, *works: Callable[[Connection], Any]) -> Any:
    """The answer of the last of the works, each in a transaction of its own."""

    async def story() -> Any:
        engine = await open_database(database_url(database))
        try:
            for work in works:
                async with engine.begin() as connection:
                    answer = await connection.run_sync(work)
            return answer
        finally:
            await engine.dispose()

    return asyncio.run(story())


def append(*seqs: int) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        for seq in seqs:
            journal.append(connection, entry(seq), at_s=seq)

    return work


def seqs(entries: Sequence[Entry]) -> list[int]:
    return [entry.mark.seq for entry in entries]


def test_rows_of_every_kind_come_back_as_they_were() -> None:
    bodies = [exports.second(good=5, bad=number, at_s=NOW_S - 7 * number, instance=f"i{number}") for number in range(4)]
    folded = concat(fold(batch(body), intake=INTAKE, streams={}) for body in bodies)
    assert folded.latencies
    assert folded.gauges
    counters = (CounterRow("", "chat", "m", "i", "proxy", "requests", (("a", "1"), ("b", "2")), 10, 0.1),)
    streams = (StreamRow("a", 1, 2, 0.3), StreamRow("b", 1, 2, 7), StreamRow("c", 1, 2, from_values([0.0, 0.2, 9.9])))
    more = Deltas(
        latencies=(scene.values(10, [0.5], censored=True, layout=scene.OURS),),
        slo=(SloRow("", "chat", "m", "ttft", "hash", 10, 2**60, 0),),
        counters=counters,
        instances=(InstanceRow("", "chat", "i", "proxy", 1, 2, periodic=True),),
        streams=streams,
    )
    for deltas in (Deltas(), folded, more):
        bare = Deltas(**{name: getattr(deltas, name) for name in journal.FIELDS})
        assert journal.decoded(journal.encoded(deltas)) == bare


def test_what_was_refused_is_nobody_elses_business() -> None:
    deltas = Deltas(rejected=(Tally("too old", 1),), ignored=(Tally("repeated", 1),))
    assert journal.decoded(journal.encoded(deltas)) == Deltas()


def test_commits_are_read_in_their_order_from_any_mark(database: str) -> None:
    def read(connection: Connection) -> Any:
        marks = (START, Mark(1, 1001), Mark(3, 1003))
        return [journal.after(connection, mark) for mark in marks], journal.end(connection)

    assert after(database, journal.end) == START
    (whole, rest, nothing), end = after(database, append(1, 2, 3), read)
    assert whole == [entry(1), entry(2), entry(3)]
    assert seqs(rest) == [2, 3]
    assert nothing == []
    assert end == Mark(3, 1003)


def test_many_commits_are_read_by_the_page(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "ENTRIES_PER_PAGE", 2)
    found = after(database, append(1, 2, 3), lambda c: (journal.after(c, START), journal.after(c, Mark(2, 1002))))
    assert list(map(seqs, found)) == [[1, 2], [3]]


def test_old_rows_go_and_the_newest_stays_however_old(database: str) -> None:
    works = [append(1, 2, 3), lambda c: journal.prune(c, before_s=2)]
    assert seqs(after(database, *works, lambda c: journal.after(c, Mark(2, 1002)))) == [3]
    assert after(database, lambda c: journal.prune(c, before_s=99), journal.end) == Mark(3, 1003)


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (START, "begins at commit 2"),
        (Mark(1, 1001), "no longer holds commit 1"),
        (Mark(2, 7), "no longer holds commit 2"),
        (Mark(9, 1009), "no longer holds commit 9"),
    ],
    ids=["a new reader came too late", "a reader was away too long", "the number came again", "commits were lost"],
)
def test_a_gap_is_told(database: str, mark: Mark, why: str) -> None:
    with pytest.raises(GapError, match=why):
        after(database, append(1, 2, 3), lambda c: journal.prune(c, before_s=2), lambda c: journal.after(c, mark))


def test_a_number_is_given_once(database: str) -> None:
    from sqlalchemy.exc import IntegrityError

    with pytest.raises(IntegrityError):
        after(database, append(1), append(1))
    assert after(database, lambda c: c.scalar(text("SELECT count(*) FROM journal"))) == 1
