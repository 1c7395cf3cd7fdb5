"""The cases of `cases.txt`: that each has its test, and those that need the whole proxy and have no other home."""

import asyncio
import gzip
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
import yaml
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans
from prometheus_client.parser import text_string_to_metric_families

from sidecar.counting.tally import Number
from sidecar.relaying.proxy import Manners
from sidecar.telling import otlp_spans
from sidecar.telling.exposition import Exposition
from slo.signals import E2E, IN_FLIGHT, REQUEST_MODEL, TPOT, TTFT
from tests.sidecar.judging.test_watch import OK, watched
from tests.sidecar.rig import (
    SSE_HEAD,
    STOP,
    Received,
    chat,
    chunk,
    completion,
    delta,
    on_a_loop,
    proxied,
    raw,
    sized,
    spec,
    until,
)
from tests.sidecar.streams import CAPTURES, DATA

ROOT = Path(__file__).parents[2]
ID = re.compile(r"(?:(?<=test_)|(?<=test_case_)|(?<=\[))([A-E]\d\d)(?=[_: \]])|(?<=\[)([SC]-\w+)", re.IGNORECASE)
HINT = re.compile(r"(?i)(?:case_|test_|[\"'])[A-E]\d\d[_ ]|written\(")  # what a file with such tests has in it
IN_ANY_CASE = ("test_splits.py", "test_template.py")  # these try every stream there is, whatever must be seen in it


@cache
def listed() -> tuple[str, ...]:
    lines = (DATA / "cases.txt").read_text().splitlines()
    return tuple(line.split()[0] for line in lines if line and not line.startswith("#"))


def in_names(names: str) -> set[str]:
    """The ids in the names of tests, as pytest lists them."""
    return {fault.upper() if fault else form for fault, form in ID.findall(names)}


def test_ids_are_found_in_names() -> None:
    names = [
        "t.py::test_case_b15_head", "t.py::test_c11_a[x]", "t.py::test_pages[C04 NaN, -nan]", "t.py::test_x[E2E]",
        "t.py::test_written_streams[A01: a role]", "t.py::test_x[S-chat_n2: two]", "t.py::test_x[C-hf_chat]",
        "t.py::test_x[a01]", "t.py::test_big_b99x",
    ]  # fmt: skip
    assert in_names("\n".join(names)) == {"B15", "C11", "C04", "A01", "S-chat_n2", "C-hf_chat"}


def test_each_case_has_a_test_with_its_id_in_its_name() -> None:
    files = [path for path in Path(__file__).parent.rglob("test_*.py") if path.name not in IN_ANY_CASE]
    hopeful = [str(path) for path in files if HINT.search(path.read_text())]
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *hopeful]
    names = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert in_names(names) == set(listed())
    assert len(listed()) == len(set(listed()))


def test_each_recorded_answer_is_a_case() -> None:
    assert {f"C-{path.stem}" for path in CAPTURES.glob("*.raw")} == {name for name in listed() if name[:2] == "C-"}


REPORTED = ROOT.parent / "shared" / "cases"

if REPORTED.is_dir():  # the collection that the list was made from, where it lies beside the project

    def test_the_list_holds_every_case_of_the_collection_that_concerns_the_sidecar() -> None:
        reported = {case["id"] for path in REPORTED.glob("*.yaml") for case in yaml.safe_load(path.read_text())}
        assert {name for name in reported if name[0] in "ABCS"} <= set(listed())
        assert {name for name in listed() if name[1] != "-"} <= reported


# Measuring.

OBJECTIVES = spec(
    "{name: first, signal: ttft, percentile: 95, threshold: 20s}",
    "{name: answered, signal: availability, target: 99.9%}",
)
WHOLE = sized(b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":400}}')


@on_a_loop
async def test_case_a08_an_answer_in_one_piece_enters_no_first_token_among_streams_that_do() -> None:
    over = asyncio.Event()

    async def handle(request: Received, writer: asyncio.StreamWriter) -> None:
        if b'"stream":false' in request.body:
            await over.wait()
            writer.write(WHOLE)
        else:
            writer.write(completion("a", "b"))

    async with proxied(handle) as rig:
        whole = asyncio.ensure_future(rig.ask(chat(stream=False)))
        for _ in range(10):
            await rig.ask(chat())
        await asyncio.sleep(0.1)
        over.set()
        await whole
        found = rig.latencies()
        assert {name: buckets.count for name, buckets in found.items()} == {TTFT.name: 10, TPOT.name: 10, E2E.name: 11}
        assert found[TTFT.name].max < found[E2E.name].max - 0.1
        record = rig.ended[-1].record
        assert (record.output_tokens, record.ttft_s, record.tpot_s) == (400, None, None)


@on_a_loop
async def test_case_a09_an_error_in_a_stream_is_bad_for_availability_and_passes_untouched() -> None:
    error = b'data: {"error":{"message":"gone","type":"server_error","code":500}}\n\n'
    answer = SSE_HEAD + chunk(delta("a")) + chunk(error) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    async with proxied(raw(answer), objectives=OBJECTIVES) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        assert await reader.readexactly(len(answer)) == answer
        assert rig.outcomes() == {"error": 1}
        assert rig.events() == {("m", "first", "good"): 1, ("m", "answered", "bad"): 1}
        assert set(rig.latencies()) == {TTFT.name}


@on_a_loop
async def test_case_a11_clients_that_leave_are_counted_once_and_are_no_outage() -> None:
    async def handle(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.field("x-case") == "tokens":
            writer.write(SSE_HEAD + b"".join(chunk(delta(text)) for text in "abc"))
        await asyncio.sleep(1000)

    async with proxied(handle, objectives=OBJECTIVES) as rig:
        rig.eye.learn("m")
        async with rig.client() as (_, writer):
            writer.write(chat())
            await until(lambda: len(rig.behind.requests) == 1)
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        async with rig.client() as (reader, writer):
            writer.write(chat(extra="X-Case: tokens\r\n"))
            await reader.readuntil(b'"c"')
        await until(lambda: rig.outcomes() == {"cancelled": 2})
        nothing, tokens = (ended.record for ended in rig.ended)
        assert (nothing.ttft_s, nothing.tpot_s, nothing.output_tokens) == (None, None, None)
        assert tokens.output_tokens == 3
        assert tokens.ttft_s is not None
        assert rig.events() == {("m", "first", "good"): 1}


# The proxy.


@pytest.mark.parametrize("reset", [False, True])
@on_a_loop
async def test_case_b01_a_client_that_leaves_is_streamed_to_no_more(reset: bool) -> None:
    sent = 0

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(SSE_HEAD)
        for _number in range(100):
            writer.write(chunk(delta("x")))
            sent += 1
            await asyncio.sleep(0.1)

    async with proxied(handle) as rig:
        async with rig.client() as (reader, writer):
            writer.write(chat(extra="X-Watch: 1\r\n"))
            await reader.readuntil(b"x")
            if reset:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        before = sent
        await rig.behind.close_seen.wait()
        assert sent <= before + 10
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        assert rig.door.pool.open_count == 0


@on_a_loop
async def test_case_b04_one_framing_field_and_the_very_bytes_of_the_body() -> None:
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\nConnection: keep-alive, X-Drop\r\n"
        b'X-Drop: 1\r\nKeep-Alive: timeout=5\r\n\r\n{"a":  "\\u00e9"}'
    )
    async with proxied(raw(answer)) as rig:
        got = await rig.ask(chat(stream=False))
        assert got.fields == ["Content-Type: application/json", "Content-Length: 16"]
        assert got.body == b'{"a":  "\\u00e9"}'


@on_a_loop
async def test_case_b05_a_packed_body_goes_to_who_asked_for_it_and_a_plain_one_to_who_did_not() -> None:
    plain = b"x" * 1000
    packed = gzip.compress(plain)

    async def handle(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.field("accept-encoding") == "gzip":
            writer.write(sized(packed).replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n", 1))
        else:
            writer.write(sized(plain))

    async with proxied(handle) as rig:
        got = await rig.ask(chat(stream=False, extra="Accept-Encoding: gzip\r\n"))
        assert (got.field("content-encoding"), got.field("content-length")) == ("gzip", str(len(packed)))
        assert gzip.decompress(got.body) == plain
        got = await rig.ask(chat(stream=False))
        assert (got.field("content-encoding"), got.field("content-length")) == (None, "1000")
        assert got.body == plain
        assert rig.behind.requests[1].field("accept-encoding") is None


SILENCES = {
    "before the head": (b"", SSE_HEAD + chunk(delta("a")) + chunk(STOP) + b"0\r\n\r\n"),
    "behind the head": (SSE_HEAD, chunk(delta("a")) + chunk(STOP) + b"0\r\n\r\n"),
    "amid the stream": (SSE_HEAD + chunk(delta("a")), chunk(delta("b")) + chunk(STOP) + b"0\r\n\r\n"),
}


@pytest.mark.parametrize("where", SILENCES)
@on_a_loop
async def test_case_b13_no_limit_of_time_cuts_a_silent_server_off(where: str) -> None:
    """The limits that there are, of idle and of slow clients, are far shorter here than the silence."""
    before, behind = SILENCES[where]

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(before)
        await silence.wait()
        writer.write(behind)

    silence = asyncio.Event()
    manners = Manners(client_idle_s=0.01, client_head_s=0.01, client_stall_s=0.01)
    async with proxied(handle, manners=manners, connect_s=0.1) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        for _ in range(20):
            await asyncio.sleep(0.02)
            rig.door.sweep()
        silence.set()
        assert await reader.readexactly(len(before + behind)) == before + behind
        assert rig.outcomes() == {"ok": 1}
        ttft_s = rig.ended[0].record.ttft_s
        assert ttft_s is not None
        assert (ttft_s >= 0.4) is (where != "amid the stream")


@on_a_loop
async def test_case_b15_events_bring_their_own_headers_and_hold_for_no_other() -> None:
    head = SSE_HEAD.replace(b"\r\n\r\n", b"\r\nX-Accel-Buffering: no\r\nCache-Control: no-cache\r\n\r\n")

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        for piece in (head, *(chunk(delta(text)) for text in "abcde")):
            writer.write(piece)
            await step.wait()
            step.clear()

    step = asyncio.Event()
    async with proxied(handle) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        for piece in (head, *(chunk(delta(text)) for text in "abcde")):
            assert await reader.readexactly(len(piece)) == piece
            step.set()


# Metrics.

NAMES = ('org/mo"del', "C:\\models\\x", "two\nlines", "emoji \U0001f30d", "", "a,b}c{d")


def page_of_names() -> bytes:
    page = Exposition("chat", "")
    page.numbers([Number(IN_FLIGHT, ((REQUEST_MODEL, name),), 1) for name in NAMES])
    return page.text()


def test_case_c07_a_model_of_any_name_is_read_back_as_it_is() -> None:
    (family,) = text_string_to_metric_families(page_of_names().decode())
    assert tuple(sample.labels["model_name"] for sample in family.samples) == NAMES


@pytest.mark.tools
def test_case_c07_prometheus_takes_the_page() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH: tests/install_tools.sh installs it")
    checked = subprocess.run([promtool, "check", "metrics"], input=page_of_names(), capture_output=True)
    assert checked.returncode in (0, 3), checked.stderr  # 3: it could be written with more style


# Telemetry.


@on_a_loop
async def test_case_e13_a_wall_clock_that_is_set_back_shortens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    s = 1_000_000_000
    wall_ns = [1_790_000_000 * s]
    async with proxied(raw(b"")) as rig:
        watch = watched(rig)
        monkeypatch.setattr(time, "time_ns", lambda: wall_ns[0])
        monkeypatch.setattr(time, "monotonic_ns", lambda: 5 * s)
        watch.body(b'{"model":"m","stream":true,"messages":[]}')
        watch.held(5 * s)
        wall_ns[0] -= 30 * s
        watch.answered(OK, 5 * s + 1)
        watch.read(delta("a"), 5 * s + s // 2)
        watch.read(STOP, 6 * s)
        watch.complete(6 * s, True)
        (ended,) = rig.ended
    assert (ended.record.ttft_s, ended.record.e2e_s) == (0.5, 1.0)
    (span,) = ScopeSpans.FromString(otlp_spans.encode(ended)).spans
    assert span.start_time_unix_nano == 1_790_000_000 * s
    assert span.end_time_unix_nano - span.start_time_unix_nano == s
