"""A collector's life as a process: kill -9 loses nothing acknowledged, the end is clean, the spec can change."""

import asyncio
import json
import random
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from collector import running
from collector.doors.address import Address
from collector.errors import ListenError
from tests.collector import exports, support
from tests.collector.support import SPEC, Running, ask, collector, send, spawned, until
from tests.ports import free_ports

ROUNDS = 2


class Sender(threading.Thread):
    """Sends a second of traffic after the other; a body without an answer is sent again until it has one, to whatever
    collector runs by then, as the sidecar does. Keeps how many bodies were acknowledged."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.acknowledged = 0
        self.url = ""
        self.is_done = False
        self._number = number

    def run(self) -> None:
        while not self.is_done:
            body = exports.second(good=3, bad=1, at_s=int(time.time()) - self._number, instance=f"i{self._number}")
            body.resource_metrics[0].schema_url = f"{self._number} {self.acknowledged}"
            while not self.is_done:
                try:
                    if send(self.url, body).status == 200:
                        self.acknowledged += 1
                        break
                except OSError:
                    time.sleep(0.01)


def test_kill_9_loses_nothing_acknowledged_and_doubles_nothing(tmp_path: Path, database: str) -> None:
    senders = [Sender(number) for number in range(3)]
    dice = random.Random(4)
    for number in range(ROUNDS):
        with collector(tmp_path, "--tick", "1s", "--database", database) as running:
            for sender in senders:
                sender.url = running.url
                if number == 0:
                    sender.start()
            before = sum(sender.acknowledged for sender in senders)
            until(lambda before=before: sum(sender.acknowledged for sender in senders) > before + 8)
            time.sleep(dice.random() / 5)
            assert running.stop(signal.SIGKILL) == -signal.SIGKILL
    with collector(tmp_path, "--tick", "1s", "--database", database) as running:
        for sender in senders:
            sender.url = running.url
        until(lambda: all(sender.acknowledged for sender in senders))
        time.sleep(0.2)
        for sender in senders:
            sender.is_done = True
        for sender in senders:
            sender.join()
        acknowledged = sum(sender.acknowledged for sender in senders)
        good, values, bodies = totals(tmp_path, database)
        # A body may be committed and its sender killed off before the answer: at most one for each sender.
        assert acknowledged <= bodies <= acknowledged + len(senders)
        assert (good, values) == (3 * bodies, 4 * bodies)
        found = until(lambda: _budget(running, good))
        assert found["bad"] == bodies
        assert running.stop() == 0


def _budget(running: Running, good: int) -> Any:
    for one in ask(f"{running.url}/api/v1/status").json["objectives"]:
        if one["model"] == "*" and one["budget"]["good"] == good:
            return one["budget"]
    return None


SHORT = """
service: chat
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 1m
    alerts: {tiers: [{name: fast, budget: 20%, long: 12s, short: 3s, notify: page}]}
"""
QUESTION = "SELECT (SELECT sum(good) FROM slo_count), (SELECT sum(count) FROM rollup), (SELECT count(*) FROM batch)"


def totals(folder: Path, database: str) -> tuple[int, ...]:
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(folder / "firsttoken.db", timeout=10)) as connection:
            return tuple(map(int, connection.execute(QUESTION).fetchone()))

    async def story() -> tuple[int, ...]:
        connection = await asyncpg.connect(database)
        try:
            return tuple(map(int, await connection.fetchrow(QUESTION)))
        finally:
            await connection.close()

    return asyncio.run(story())


def test_a_page_rings_once_and_is_taken_back(tmp_path: Path) -> None:
    """Wire to webhook: bad seconds, one page; good seconds, one end."""
    with (
        support.receiver() as kept,
        collector(tmp_path, "--tick", "1s", "--webhook", f"{kept.url}/hook", spec=SHORT) as running,
    ):

        def pages() -> list[Any]:
            bodies: list[Any] = [body for _, body in kept.told]
            return [body for body in bodies if body["receiver"] == "firsttoken-page"]

        def told() -> list[str]:
            return [body["status"] for body in pages()]

        def traffic(good: int, bad: int) -> None:
            send(running.url, exports.second(good=good, bad=bad, at_s=int(time.time())))
            time.sleep(0.2)

        until(lambda: traffic(0, 10) or told() == ["firing"])
        status = ask(f"{running.url}/api/v1/status").json
        assert "firing" in {alert["state"] for alert in status["alerts"]}
        until(lambda: b"Alerts now" in ask(running.url).body)
        until(lambda: traffic(500, 0) or told() == ["firing", "resolved"], patience_s=60)
        assert {alert["status"] for alert in pages()[-1]["alerts"]} == {"resolved"}
        until(lambda: b"LLMTTFTBudgetBurn" in ask(running.url).body)
        with closing(sqlite3.connect(tmp_path / "firsttoken.db")) as connection:
            states = {row[0] for row in connection.execute("SELECT state FROM alert_event")}
        assert {"firing", "resolved"} <= states
        assert running.stop() == 0
    assert told() == ["firing", "resolved"]


def test_hup_reads_the_spec_anew_and_a_faulty_one_changes_nothing(tmp_path: Path) -> None:
    def targets(running: Running) -> list[float]:
        return [one["target"] for one in ask(f"{running.url}/api/v1/status").json["objectives"]]

    def reloaded(running: Running, value: int) -> bool:
        return f"last_reload_successful {value}.0".encode() in ask(f"{running.url}/metrics").body

    with collector(tmp_path, "--tick", "1s") as running:
        send(running.url, exports.second(good=3, bad=1, at_s=int(time.time())))
        (tmp_path / "slo.yaml").write_text(SPEC.replace("percentile: 95", "percentile: 200"))
        running.process.send_signal(signal.SIGHUP)
        until(lambda: reloaded(running, 0))
        assert set(targets(running)) == {0.95}
        (tmp_path / "slo.yaml").write_text(SPEC.replace("percentile: 95", "percentile: 90"))
        running.process.send_signal(signal.SIGHUP)
        until(lambda: reloaded(running, 1))
        until(lambda: set(targets(running)) == {0.9} and _budget(running, 3))
        assert "percentile" in running.log.read_text()


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    with collector(tmp_path, "--tick", "1s", "--token-file", "token") as running:
        assert ask(f"{running.url}/api/v1/status").status == 401
        assert send(running.url, exports.export()).status == 401
        assert ask(f"{running.url}/healthz").status == 200
        assert ask(f"{running.url}/api/v1/status", authorization="Bearer s3cret").status == 200


def test_the_end_waits_for_no_viewer(tmp_path: Path) -> None:
    import urllib.request

    with collector(tmp_path, "--tick", "1s") as running:
        with urllib.request.urlopen(f"{running.url}/api/v1/ticks", timeout=30) as stream:
            assert stream.readline() == b"retry: 2000\n"
            started = time.monotonic()
            assert running.stop(signal.SIGINT) == 0
            assert time.monotonic() - started < 9
        assert "Traceback" not in running.log.read_text()
        assert not (tmp_path / "firsttoken.db-wal").exists()


def _spec_hash(running: Running) -> str:
    (line,) = (line for line in ask(f"{running.url}/metrics").body.decode().splitlines() if "spec_info{" in line)
    return line


def test_a_changed_file_is_read_anew_where_that_is_wanted(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s", "--watch-slo") as running:
        before = _spec_hash(running)
        (tmp_path / "new").write_text(SPEC.replace("500ms", "250ms"))
        (tmp_path / "new").replace(tmp_path / "slo.yaml")
        until(lambda: _spec_hash(running) != before)
        assert running.stop() == 0


def test_a_tick_that_is_long_for_a_window_is_told(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "10s") as running:
        assert running.stop() == 0
        assert "tier fast of chat/ttft looks back 15s, under two ticks of 10s" in running.log.read_text()


def test_every_line_of_the_log_is_json_where_that_is_wanted(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s", "--log-format", "json", "--log-level", "debug") as running:
        (tmp_path / "slo.yaml").write_text("nonsense: 1\n")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: "nonsense" in running.log.read_text())
        send(running.url, exports.export())
        assert running.stop() == 0
        levels = [json.loads(line)["level"] for line in running.log.read_text().splitlines()]
    assert "error" in levels


def test_the_usual_port_of_grpc_may_be_taken_but_not_one_that_was_named(caplog: pytest.LogCaptureFixture) -> None:
    """All who speak the protocol share 4317: a collector that nobody told of gRPC runs without it, and says so."""

    async def opened(address: Address) -> bool:
        async with running._rpc(address, None) as rpc:
            return rpc is not None

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not asyncio.run(opened(Address("127.0.0.1", port, is_usual=True)))
        assert f"no OTLP over gRPC: --grpc 127.0.0.1:{port}: Address already in use" in caplog.text
        with pytest.raises(ListenError):
            asyncio.run(opened(Address("127.0.0.1", port)))
    assert asyncio.run(opened(Address("127.0.0.1", 0)))


def test_without_grpc_its_library_is_not_even_imported(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s", "--grpc", "off") as running:
        mapped = Path(f"/proc/{running.process.pid}/maps").read_text()
        assert "uvloop" in mapped
        assert "cygrpc" not in mapped
        assert running.stop() == 0


def test_a_database_that_is_held_by_another_does_not_hold_the_end_up(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s", "--drain-timeout", "1s") as running:
        holder = sqlite3.connect(tmp_path / "firsttoken.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        message = exports.second(good=1, bad=0, at_s=int(time.time()))
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(send, running.url, message)
            until(lambda: ask(f"{running.url}/readyz").status == 503)
            assert running.stop() == 0
            assert answer.result().status >= 500
        holder.close()


def test_it_works_on_when_nobody_reads_where_it_listens(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with spawned(tmp_path, "--tick", "1s", "--listen", f"127.0.0.1:{port}") as process:
        assert process.stdout is not None
        process.stdout.close()
        until(lambda: _answers(f"http://127.0.0.1:{port}") and b"ready" in ask(f"http://127.0.0.1:{port}/readyz").body)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert (tmp_path / support.LOG).read_text() == ""


@pytest.mark.tools
def test_while_the_past_is_read_it_answers_that_it_is_not_ready(tmp_path: Path, shared_database: str) -> None:
    """A table is locked, so that reading lasts; what is sent meanwhile is to be sent again."""
    with collector(tmp_path, "--database", shared_database) as first:
        assert first.stop() == 0

    async def story() -> None:
        holder = await asyncpg.connect(shared_database)
        lock = holder.transaction()
        await lock.start()
        await holder.execute("LOCK TABLE series")
        (port,) = free_ports(1)
        flags = ("--listen", f"127.0.0.1:{port}", "--database", shared_database)
        starting = asyncio.create_task(asyncio.to_thread(_started, tmp_path, flags))
        url = f"http://127.0.0.1:{port}"
        await asyncio.to_thread(until, lambda: _answers(url))
        ready = await asyncio.to_thread(ask, f"{url}/readyz")
        assert (ready.status, b"reading the past" in ready.body) == (503, True)
        body = exports.second(good=1, bad=0, at_s=int(time.time()))
        sent = await asyncio.to_thread(send, url, body)
        assert (sent.status, sent.headers["retry-after"].isdigit()) == (503, True)
        assert not starting.done()
        await lock.rollback()
        await holder.close()
        await starting

    asyncio.run(story())


def _answers(url: str) -> bool:
    try:
        return ask(f"{url}/healthz").status == 200
    except OSError:
        return False


def _started(folder: Path, flags: Sequence[str]) -> None:
    """A collector that comes so far as to say where it is."""
    with collector(folder, *flags) as running:
        assert ask(f"{running.url}/readyz").status == 200
        assert running.stop() == 0
