"""A worker's place: who sits there is replaced, and what a dead one said is kept."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar import limits
from sidecar.address import HostPort
from sidecar.options import Options
from sidecar.otlp_settings import ExportSettings
from sidecar.overseer import Overseer
from sidecar.seat import Seat
from sidecar.shared_address import SharedAddress, share
from sidecar.telemetry import emitter_of, eye_of
from sidecar.upstream import Target
from sidecar.worker_pipe import Start
from slo.signals import OUTCOME, REQUEST_MODEL, REQUESTS, WORKER_DEATHS
from tests.sidecar.rig import Received, chat, completion, on_a_loop, raw, read_message, serving, until


class Sat:
    """A seat, and what it changed."""

    def __init__(self, upstream: int, address: SharedAddress) -> None:
        nowhere, local = ExportSettings(traces=None, metrics=None), HostPort("127.0.0.1", 0)
        target = Target("http", "127.0.0.1", upstream)
        options = Options(target, listen=local, admin=local, service="chat", version="1", export=nowhere)
        plan = options.plan()
        emitter = emitter_of(plan)
        self.overseer = Overseer(eye_of(plan, asyncio.get_running_loop(), emitter), emitter.dropped)
        self.port, self.changes = int(address.url.rpartition(":")[2]), 0
        self.seat = Seat(
            1,
            self.overseer,
            lambda: Start(1, options, plan, None),
            sockets=address.sockets,
            changed=self.changed,
        )

    def changed(self) -> None:
        self.changes += 1

    @property
    def pid(self) -> int:
        assert self.seat._process is not None
        return self.seat._process.pid

    async def ask(self) -> Received:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(chat())
            return await read_message(reader)
        finally:
            writer.close()

    def counted(self, outcome: str = "ok") -> int:
        return self.overseer.tally.total(REQUESTS, ((REQUEST_MODEL, "m"), (OUTCOME, outcome)))


@contextlib.asynccontextmanager
async def sitting(upstream: int = 1) -> AsyncIterator[Sat]:
    """A seat that is kept, and nobody in it afterwards."""
    address = await share(HostPort("127.0.0.1", 0), flag="--listen")
    sat = Sat(upstream, address)
    keeping = asyncio.create_task(sat.seat.keep())
    try:
        yield sat
    finally:
        sat.seat.kill()
        await keeping
        address.close()


@on_a_loop
async def test_a_worker_that_dies_is_replaced_and_its_counts_stay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with serving(raw(completion("a"))) as behind, sitting(behind.port) as sat:
        await until(lambda: sat.seat.ready)
        await sat.ask()
        await sat.seat.report()
        assert sat.counted() == 1
        first = sat.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: not sat.seat.ready)
        await until(lambda: sat.seat.ready and sat.pid != first)
        assert (sat.counted(), sat.overseer.tally.total(WORKER_DEATHS, ())) == (1, 1)
        assert sat.changes == 3
        assert sat.seat.misfires == 0
        await sat.ask()
        await sat.seat.report()
        assert sat.counted() == 2
    (line,) = caplog.messages
    assert line == (
        "worker 1 was killed by SIGKILL: 0 requests were in flight and count as errors; the next starts in 0.1 s"
    )


@on_a_loop
async def test_what_was_in_flight_counts_as_broken() -> None:
    async def hang(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with serving(hang) as behind, sitting(behind.port) as sat:
        await until(lambda: sat.seat.ready)
        reader, writer = await asyncio.open_connection("127.0.0.1", sat.port)
        writer.write(chat())
        await until(lambda: bool(behind.requests))
        await sat.seat.report()
        assert sat.overseer.in_flight == 1
        os.kill(sat.pid, signal.SIGKILL)
        assert await reader.read() == b""
        await until(lambda: not sat.overseer.in_flight)
        assert sat.overseer.tally.total(REQUESTS, ((REQUEST_MODEL, "other"), (OUTCOME, "error"))) == 1
        writer.close()


@on_a_loop
async def test_told_to_end_it_lets_its_worker_end_and_seats_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(raw(completion("a"))) as behind, sitting(behind.port) as sat:
        await until(lambda: sat.seat.ready)
        await sat.ask()
        sat.seat.end()
        await until(lambda: sat.seat._process is None)
        assert sat.counted() == 1
        assert sat.overseer.tally.total(WORKER_DEATHS, ()) == 0
        assert not sat.seat.ready
        await sat.seat.report()  # of nobody: at once
    assert caplog.messages == []


@on_a_loop
async def test_one_that_is_told_to_end_while_it_starts_ends(caplog: pytest.LogCaptureFixture) -> None:
    async with sitting() as sat:
        await until(lambda: sat.seat._pipe is not None)
        assert not sat.seat.ready
        sat.seat.end()
        await until(lambda: sat.seat._process is None)
    assert caplog.messages == []


@pytest.mark.parametrize("program", ["false", "nowhere"])
@on_a_loop
async def test_workers_that_do_not_start_come_ever_more_seldom(
    program: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    for name, value in (("WORKER_PAUSE_S", 0.01), ("WORKER_LONGEST_PAUSE_S", 0.04)):
        monkeypatch.setattr(limits, name, value)
    made = tmp_path / "false"
    made.write_text("#!/bin/sh\nexit 3\n")
    made.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / program))
    async with sitting() as sat:
        await until(lambda: sat.seat.misfires >= 4)
        assert not sat.seat.ready
    pauses = [line.rpartition("starts in ")[2] for line in caplog.messages]
    assert pauses[:4] == ["0.01 s", "0.02 s", "0.04 s", "0.04 s"]
    why = "ended with exit code 3" if program == "false" else "could not be started (No such file or directory)"
    assert caplog.messages[0].startswith(f"worker 1 {why}: 0 requests")


@on_a_loop
async def test_a_worker_that_stands_still_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "WORKER_SILENT_S", 3)
    monkeypatch.setattr(limits, "WORKER_ANSWER_S", 0.05)
    async with sitting() as sat:
        await until(lambda: sat.seat.ready)
        first = sat.pid
        os.kill(first, signal.SIGSTOP)
        await sat.seat.report()  # waits, but not for ever
        for _ in range(4):
            sat.seat.second(sat.overseer.state())
        await until(lambda: sat.seat.ready and sat.pid != first)
        sat.seat.second(sat.overseer.state())
        await sat.seat.report()
        for _ in range(3):
            sat.seat.second(sat.overseer.state())
        assert sat.seat.ready
    assert caplog.messages[0] == "worker 1 has said nothing for 3 s and is killed"


@pytest.mark.parametrize("closes", [False, True], ids=["never begins", "says nothing more"])
@on_a_loop
async def test_a_process_that_only_lingers_is_killed(
    closes: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(limits, "WORKER_START_S", 2)
    monkeypatch.setattr(limits, "WORKER_END_S", 0.1)
    made = tmp_path / "lingering"
    close = "os.close(int(sys.argv[4]))" if closes else "pass"
    made.write_text(f"#!{sys.executable} -S\nimport os, sys, time\n{close}\ntime.sleep(1000)\n")
    made.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(made))
    async with sitting() as sat:
        await until(lambda: sat.seat._pipe is not None or closes)
        for _ in range(0 if closes else 3):
            sat.seat.second(sat.overseer.state())
        await until(lambda: sat.seat.misfires == 1)
    *told, line = caplog.messages[: 1 if closes else 2]
    assert told == ([] if closes else ["worker 1 has said nothing for 2 s and is killed"])
    assert line.startswith("worker 1 was killed by SIGKILL: 0 requests")
