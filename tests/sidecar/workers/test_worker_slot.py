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
from sidecar.configuration.options import Options
from sidecar.otlp_settings import ExportSettings
from sidecar.serving.telemetry import emitter_of, eye_of
from sidecar.transport.upstream import Target
from sidecar.workers.shared_address import SharedAddress, share
from sidecar.workers.worker_pipe import Start
from sidecar.workers.worker_slot import WorkerSlot
from sidecar.workers.workers_eye import WorkersEye
from slo.signals import OUTCOME, REQUEST_MODEL, REQUESTS, WORKER_DEATHS
from tests.sidecar.rig import Received, chat, completion, on_a_loop, raw, read_message, serving, until


class Kept:
    """A slot, and how often it told of a change."""

    def __init__(self, upstream: int, address: SharedAddress) -> None:
        nowhere, local = ExportSettings(traces=None, metrics=None), HostPort("127.0.0.1", 0)
        target = Target("http", "127.0.0.1", upstream)
        options = Options(target, listen=local, admin=local, service="chat", version="1", export=nowhere)
        plan = options.plan()
        emitter = emitter_of(plan)
        self.eye = WorkersEye(eye_of(plan, asyncio.get_running_loop(), emitter), emitter.count)
        self.port, self.changes = int(address.url.rpartition(":")[2]), 0
        self.slot = WorkerSlot(
            1,
            self.eye,
            lambda: Start(1, options, plan, None),
            sockets=address.sockets,
            changed=self.changed,
        )

    def changed(self) -> None:
        self.changes += 1

    @property
    def pid(self) -> int:
        assert self.slot._process is not None
        return self.slot._process.pid

    async def ask(self) -> Received:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(chat())
            return await read_message(reader)
        finally:
            writer.close()

    def counted(self, outcome: str = "ok") -> int:
        return self.eye.tally.total(REQUESTS, ((REQUEST_MODEL, "m"), (OUTCOME, outcome)))


@contextlib.asynccontextmanager
async def a_slot(upstream: int = 1) -> AsyncIterator[Kept]:
    """A slot that is kept, and nobody in it afterwards."""
    address = await share(HostPort("127.0.0.1", 0), flag="--listen")
    kept = Kept(upstream, address)
    keeping = asyncio.create_task(kept.slot.keep())
    try:
        yield kept
    finally:
        kept.slot.kill()
        await keeping
        address.close()


@on_a_loop
async def test_a_worker_that_dies_is_replaced_and_its_counts_stay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with serving(raw(completion("a"))) as behind, a_slot(behind.port) as kept:
        await until(lambda: kept.slot.ready)
        await kept.ask()
        await kept.slot.report()
        assert kept.counted() == 1
        first = kept.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: not kept.slot.ready)
        await until(lambda: kept.slot.ready and kept.pid != first)
        assert (kept.counted(), kept.eye.tally.total(WORKER_DEATHS, ())) == (1, 1)
        assert kept.changes == 3
        assert kept.slot.misfires == 0
        await kept.ask()
        await kept.slot.report()
        assert kept.counted() == 2
    (line,) = caplog.messages
    assert line == (
        "worker 1 was killed by SIGKILL: 0 requests were in flight and count as errors; the next starts in 0.1 s"
    )


@on_a_loop
async def test_what_was_in_flight_counts_as_broken() -> None:
    async def hang(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with serving(hang) as behind, a_slot(behind.port) as kept:
        await until(lambda: kept.slot.ready)
        reader, writer = await asyncio.open_connection("127.0.0.1", kept.port)
        writer.write(chat())
        await until(lambda: bool(behind.requests))
        await kept.slot.report()
        assert kept.eye.in_flight == 1
        os.kill(kept.pid, signal.SIGKILL)
        assert await reader.read() == b""
        await until(lambda: not kept.eye.in_flight)
        assert kept.eye.tally.total(REQUESTS, ((REQUEST_MODEL, "other"), (OUTCOME, "error"))) == 1
        writer.close()


@on_a_loop
async def test_told_to_end_it_lets_its_worker_end_and_starts_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(raw(completion("a"))) as behind, a_slot(behind.port) as kept:
        await until(lambda: kept.slot.ready)
        await kept.ask()
        kept.slot.end()
        await until(lambda: kept.slot._process is None)
        assert kept.counted() == 1
        assert kept.eye.tally.total(WORKER_DEATHS, ()) == 0
        assert not kept.slot.ready
        await kept.slot.report()  # of nobody: at once
    assert caplog.messages == []


@on_a_loop
async def test_one_that_is_told_to_end_while_it_starts_ends(caplog: pytest.LogCaptureFixture) -> None:
    async with a_slot() as kept:
        await until(lambda: kept.slot._pipe is not None)
        assert not kept.slot.ready
        kept.slot.end()
        await until(lambda: kept.slot._process is None)
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
    async with a_slot() as kept:
        await until(lambda: kept.slot.misfires >= 4)
        assert not kept.slot.ready
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
    async with a_slot() as kept:
        await until(lambda: kept.slot.ready)
        first = kept.pid
        os.kill(first, signal.SIGSTOP)
        await kept.slot.report()  # waits, but not for ever
        for _ in range(4):
            kept.slot.second(kept.eye.state())
        await until(lambda: kept.slot.ready and kept.pid != first)
        kept.slot.second(kept.eye.state())
        await kept.slot.report()
        for _ in range(3):
            kept.slot.second(kept.eye.state())
        assert kept.slot.ready
    assert caplog.messages[0] == "worker 1 has said nothing for 3 s and is killed"


@pytest.mark.parametrize("closes", [False, True], ids=["never begins", "says nothing more"])
@on_a_loop
async def test_a_process_that_only_lingers_is_killed(
    closes: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(limits, "WORKER_START_S", 2)
    monkeypatch.setattr(limits, "WORKER_END_S", 0.1)
    made = tmp_path / "lingering"
    close = "os.close(int(sys.argv[5]))" if closes else "pass"  # what it speaks into
    made.write_text(f"#!{sys.executable} -S\nimport os, sys, time\n{close}\ntime.sleep(1000)\n")
    made.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(made))
    async with a_slot() as kept:
        await until(lambda: kept.slot._pipe is not None or closes)
        for _ in range(0 if closes else 3):
            kept.slot.second(kept.eye.state())
        await until(lambda: kept.slot.misfires == 1)
    *told, line = caplog.messages[: 1 if closes else 2]
    assert told == ([] if closes else ["worker 1 has said nothing for 2 s and is killed"])
    assert line.startswith("worker 1 was killed by SIGKILL: 0 requests")
