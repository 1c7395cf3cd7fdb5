"""Cases of `tests/data/cases.txt` that need a whole collector, or a whole store, and have no other home."""

import asyncio
import gzip
import http.client
import sqlite3
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select

from collector import schema
from slo import signals
from slo.signals import SERVICE_INSTANCE, SERVICE_NAME
from tests.alerts.support import tool
from tests.collector import exports, messages
from tests.collector.stores import Clock, batch, store, totals
from tests.collector.support import Running, ask, collector, send, until

MODELS = ('org/mo"del', "C:\\models\\x", "two\nlines", "emoji 🌍", "a,b}c{d", "")


@pytest.mark.tools
def test_c07_any_model_name_comes_back_from_the_page_as_it_was_sent(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s") as running:
        at_s = int(time.time())
        for name in MODELS:
            assert send(running.url, exports.export(exports.events(good=3, bad=1, at_s=at_s, model=name))).status == 200
        page = until(lambda: _page_of(running, models=len(MODELS) + 1))
        checked = subprocess.run([tool("promtool"), "check", "metrics"], input=page, capture_output=True, timeout=60)
        assert checked.returncode in (0, 3), checked.stderr.decode()
    assert set(MODELS) - {""} <= _models(page)


def _page_of(running: Running, *, models: int) -> bytes | None:
    page = ask(f"{running.url}/metrics").body
    return page if len(_models(page)) >= models else None


def _models(page: bytes | None) -> set[str]:
    """Models of the budgets of a page."""
    families = text_string_to_metric_families((page or b"").decode())
    samples = (sample for family in families for sample in family.samples)
    return {s.labels["model_name"] for s in samples if s.name == signals.BUDGET_REMAINING.prometheus}


EDGES = """
service: engine
objectives:
  - {name: a, signal: e2e, percentile: 80, threshold: 2s, window: 10m}
  - {name: b, signal: e2e, percentile: 80, threshold: 2.0s, window: 10m}
  - {name: c, signal: e2e, percentile: 80, threshold: 2000ms, window: 10m}
  - {name: d05, signal: e2e, percentile: 80, threshold: 3s, window: 10m}
"""


def test_d06_a_threshold_finds_its_bucket_however_it_is_written_and_d05_one_between_buckets_says_so(
    tmp_path: Path,
) -> None:
    """Nine of ten took at most two seconds, by an engine's own buckets; of the tenth nothing better is known than
    that it took at most four."""
    with collector(tmp_path, "--tick", "1s", spec=EDGES) as running:
        at_s = int(time.time())
        point = messages.explicit_point([1.0, 2.0, 4.0], [4, 5, 1, 0], at_s=at_s, start_s=at_s - 1)
        resource: dict[str, messages.Value] = {SERVICE_NAME: "engine", SERVICE_INSTANCE: "e1"}
        send(running.url, messages.metrics(messages.explicit(signals.E2E.name, point), resource=resource))
        found = until(lambda: _judged(running, "a"))
        question = "SELECT DISTINCT objective, good, bad, unsure FROM burn_rate WHERE window_s = 600 AND good + bad > 0"
        with closing(sqlite3.connect(tmp_path / "firsttoken.db", timeout=10)) as connection:
            counted = {row[0]: row[1:] for row in until(lambda: connection.execute(question).fetchall())}
    assert {one["basis"] for one in found} == {"histogram"}
    assert {counted[name] for name in "abc"} == {(9, 1, 0)}
    good, bad, unsure = counted["d05"]
    assert (good + bad, unsure) == (10, 1)


def _judged(running: Running, name: str) -> list[Any]:
    """The objectives, once the one of that name has events."""
    objectives: list[Any] = ask(f"{running.url}/api/v1/status").json["objectives"]
    has_events = any(one["objective"] == name and one["budget"]["good"] for one in objectives)
    return [one for one in objectives if one["budget"]["good"]] if has_events else []


MIB = 1 << 20


def zeros(mib: int, encoding: str = "gzip") -> bytes:
    """So many MiB of nothing, packed as one stream."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    return b"".join([*(packing.compress(bytes(MIB)) for _ in range(mib)), packing.flush()])


def chunked(data: bytes) -> Iterator[bytes]:
    yield from (data[start : start + 4096] for start in range(0, len(data), 4096))


BOMB = zeros(200)
TEXT = gzip.compress(b"no message")
BODIES: dict[str, tuple[str, bytes | Iterator[bytes], int]] = {
    "200 MiB in 200 kB": ("gzip", BOMB, 413),
    "the same in chunks": ("gzip", chunked(BOMB), 413),
    "the same as deflate": ("deflate", zeros(200, "deflate"), 413),
    "many members": ("gzip", gzip.compress(bytes(MIB)) * 200, 413),
    "a bad checksum": ("gzip", TEXT[:-8] + bytes(8), 400),
    "cut off": ("gzip", TEXT[:-4], 400),
    "packed twice": ("gzip, gzip", gzip.compress(TEXT), 415),
}


def test_e09_a_small_body_that_grows_without_end_costs_neither_memory_nor_the_next_export(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s") as running:
        message = exports.second(good=3, bad=1, at_s=int(time.time()))
        assert send(running.url, message).status == 200
        before_kib = _peak_kib(running)
        answers = {name: _status(running, encoding, body) for name, (encoding, body, _) in BODIES.items()}
        assert answers == {name: status for name, (_, _, status) in BODIES.items()}
        assert _peak_kib(running) - before_kib <= 64 * 1024
        assert send(running.url, exports.second(good=5, bad=1, at_s=int(time.time()))).status == 200


def _status(running: Running, encoding: str, body: bytes | Iterator[bytes]) -> int:
    host, port = running.url.removeprefix("http://").split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=30)) as connection:
        headers = {"content-type": "application/x-protobuf", "content-encoding": encoding}
        with suppress(BrokenPipeError, ConnectionResetError):  # it has seen enough, and answered before the end
            connection.request("POST", "/v1/metrics", body, headers, encode_chunked=not isinstance(body, bytes))
        return connection.getresponse().status


def _peak_kib(running: Running) -> int:
    lines = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def test_g01_writers_that_read_first_and_readers_beside_them_are_never_turned_away(tmp_path: Path) -> None:
    """Eight writers, each a connection of its own that reads what it then adds to, and two readers that keep their
    transactions open for a while."""
    path, done, faults = tmp_path / "firsttoken.db", threading.Event(), []
    now_s = 1_800_000_000

    def read() -> None:
        with closing(sqlite3.connect(path, timeout=5)) as connection:
            while not done.is_set():
                try:
                    connection.execute("BEGIN")
                    first = connection.execute("SELECT sum(good) FROM slo_count").fetchone()
                    time.sleep(0.02)
                    assert connection.execute("SELECT sum(good) FROM slo_count").fetchone() == first
                    connection.execute("COMMIT")
                except (sqlite3.Error, AssertionError) as fault:
                    faults.append(fault)
                    return

    async def write(who: int) -> None:
        async with store(f"sqlite:///{path}", clock=Clock(now_s)) as one:
            for number in range(10):
                body = batch(exports.second(good=3, bad=1, at_s=now_s - 5))
                await one.count(b"%d-%d" % (who, number), body)

    async def story() -> dict[str, Any]:
        async with store(f"sqlite:///{path}", clock=Clock(now_s)) as one:
            readers = [threading.Thread(target=read) for _ in range(2)]
            for reader in readers:
                reader.start()
            await asyncio.gather(*map(write, range(8)))
            done.set()
            for reader in readers:
                reader.join()
            return await one.read(totals)

    found = asyncio.run(story())
    assert faults == []
    assert (found["good"], found["bad"]) == (8 * 10 * 3, 8 * 10 * 1)


def test_g02_the_log_that_a_long_reader_held_falls_back_once_it_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "firsttoken.db-wal"
    with collector(tmp_path, "--tick", "1s") as running:
        number = count(1)

        def log_after_some_commits() -> int:
            for _ in range(20):
                message = exports.second(good=next(number), bad=0, at_s=int(time.time()))
                assert send(running.url, message).status == 200
            return log.stat().st_size

        log_after_some_commits()
        with closing(sqlite3.connect(tmp_path / "firsttoken.db")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM rollup").fetchone()
            until(lambda: log_after_some_commits() > 12 * MIB, patience_s=90)
        until(lambda: log_after_some_commits() < 10 * MIB, patience_s=60)
        page = ask(f"{running.url}/metrics").body.decode()
        assert f"\n{signals.DATABASE_WAL.prometheus} " in page


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that stands in New York."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def steps(database: str, moments: list[str]) -> list[int]:
    """Count a good event at each of some moments, all within the window, and give the steps that hold one."""
    instants = [datetime.fromisoformat(moment).timestamp() for moment in moments]

    async def story() -> list[int]:
        async with store(database, clock=Clock(max(instants) + 1)) as one:
            for number, at_s in enumerate(instants):
                await one.count(b"%d" % number, batch(exports.second(good=1, bad=0, at_s=at_s)))
            table = schema.slo_count.c
            question = select(table.start_s).where(table.good == 1).order_by(table.start_s)
            return list(await one.read(lambda connection: connection.scalars(question).all()))

    return asyncio.run(story())


@pytest.mark.usefixtures("new_york")
def test_g03_an_instant_is_kept_and_found_whatever_zone_it_was_written_in(database: str) -> None:
    (start_s,) = steps(database, ["2026-01-01T13:30:45-08:00"])
    assert start_s == datetime.fromisoformat("2026-01-01T21:30:40Z").timestamp()
    assert start_s >= datetime.fromisoformat("2026-01-01T21:00:00+00:00").timestamp()


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(
    "moments",
    [["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"], ["2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z"]],
    ids=["G08: the hour that comes twice", "G08: the hour that is left out"],
)
def test_hours_are_told_apart_when_clocks_change(database: str, moments: list[str]) -> None:
    hours = [start_s // 3600 for start_s in steps(database, moments)]
    assert hours == [datetime.fromisoformat(moment).timestamp() // 3600 for moment in moments]
