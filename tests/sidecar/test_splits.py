"""Every stream that a server sent, cut anywhere: what is seen of it and what its client gets stay the same.

The streams are those of `streams.yaml` and the recorded answers, each plain and packed, in chunks, with a length and
until the close. First without a socket, where every split can be tried; then through the real proxy.
"""

import asyncio
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.engine.engines import UsageChunk
from sidecar.said.record import Record
from sidecar.usage import usage_pass
from sidecar.usage.usage_hide import UsageFilter
from sidecar.usage.usage_pass import UsagePass
from sidecar.usage.usage_policy import DIALECTS, UsagePolicy
from sidecar.within.asgi import Receive, Scope, Send
from slo.signals import DIALECT, UNPARSED
from tests.sidecar.answers import CLOSE, CODINGS, FRAMINGS, LENGTH, Answer, unchunked
from tests.sidecar.rig import Received, Rig, on_a_loop, proxied, until
from tests.sidecar.said.test_exchange import STREAMS
from tests.sidecar.streams import Reads, Stream, captured, cut
from tests.sidecar.within.test_asgi_relay import way

REFUSAL = captured("vllm_err_len", "/v1/chat/completions")
EVERY = {**STREAMS, REFUSAL.id: REFUSAL}
PLACES = st.lists(st.lists(st.integers(0, 5000), max_size=6), min_size=1, max_size=5)


def split(writes: Reads, places: list[list[int]]) -> Iterator[tuple[int, bytes]]:
    for number, (at_ns, data) in enumerate(writes):
        for piece in cut(data, places[number % len(places)]):
            yield at_ns, piece


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=25)
@given(coding=st.sampled_from(list(CODINGS)), framing=st.sampled_from(list(FRAMINGS)), places=PLACES)
def test_any_split_of_any_coding_and_framing_gives_the_same_record(
    name: str, coding: str, framing: str, places: list[list[int]]
) -> None:
    answer = Answer(EVERY[name], coding, framing)
    plainly = Answer(EVERY[name], framing=CLOSE if framing == CLOSE else LENGTH)
    assert answer.read(split(answer.writes, places)) == plainly.read(plainly.writes)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("name", EVERY)
def test_byte_by_byte_in_chunks(name: str, coding: str) -> None:
    answer, plainly = Answer(EVERY[name], coding), Answer(EVERY[name], framing=LENGTH)
    single = ((at_ns, data[i : i + 1]) for at_ns, data in answer.writes for i in range(len(data)))
    assert answer.read(single) == plainly.read(plainly.writes)


# What the client gets of a stream from which the usage chunk is taken out.

CHUNKS = {"sglang": UsageChunk(), "vllm": UsageChunk(moves_fingerprint=True, only_there=("metrics",))}


def passed(answer: Answer, reads: Iterable[tuple[int, bytes]], *, engine: str, chunks: bool) -> tuple[bytes, Record]:
    """The body that the client gets, and what is seen of the server's."""
    written: list[bytes] = []

    async def run() -> Record:
        way = UsagePass(written.append, UsageFilter(CHUNKS[engine]), chunks=chunks, look=lambda act, *args: act(*args))
        record = answer.read(reads, lambda payload: way.pass_on(payload) if payload else None)
        way.end(())
        return record

    record = asyncio.run(run())
    got = b"".join(written)
    return (unchunked(got) if chunks else got), record


def plain(stream: Stream) -> bytes:
    return b"".join(data for _, data in stream.reads)


def hidden(stream: Stream, engine: str) -> bytes:
    """The body of a stream without its usage chunk, filtered in one piece."""
    hide = UsageFilter(CHUNKS[engine])
    return hide.feed(plain(stream)) + hide.flush()


@pytest.mark.parametrize("engine", CHUNKS)
@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=10)
@given(framing=st.sampled_from(list(FRAMINGS)), chunks=st.booleans(), places=PLACES)
def test_any_split_brings_the_client_the_same_bytes_without_the_usage_chunk(
    name: str, engine: str, framing: str, chunks: bool, places: list[list[int]]
) -> None:
    answer = Answer(EVERY[name], framing=framing)
    whole, record = passed(answer, answer.writes, engine=engine, chunks=chunks)
    assert whole == hidden(EVERY[name], engine)
    assert passed(answer, split(answer.writes, places), engine=engine, chunks=chunks) == (whole, record)


# Through the real proxy.

FACTS = (
    "dialect", "operation", "request_model", "response_model", "stream", "streamed", "status", "outcome", "error_type",
    "input_tokens", "output_tokens", "streamed_tokens", "token_count_source", "finish_reasons", "token_events",
    "unparsed_events",
)  # fmt: skip


def facts(record: Record) -> dict[str, Any]:
    """All of a record that is no time."""
    return {name: getattr(record, name) for name in FACTS}


def request(stream: Stream, *fields: str) -> bytes:
    lines = [f"POST {stream.path} HTTP/1.1", "Host: h", "Connection: close", f"Content-Length: {len(stream.body)}"]
    return "".join(f"{line}\r\n" for line in (*lines, *fields)).encode() + b"\r\n" + stream.body


async def through(
    answer: Answer, writes: Iterable[bytes], *, engine: str | None = None, in_step: bool = False
) -> tuple[bytes, bytes, Rig]:
    """Head and body that a client got, and the proxy that it got them from. With an `engine` the proxy asks for usage;
    `in_step`: each write has reached the client before the next one is made."""
    got = bytearray()

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        sent = 0
        for data in writes:
            writer.write(data)
            sent += len(data)
            await asyncio.sleep(0)
            if in_step:
                await until(lambda: len(got) >= sent)  # noqa: B023  waited for at once
        if not answer.is_framed:
            writer.close()

    async with proxied(handle) as rig:
        if engine is not None:
            rig.eye.usage = UsagePolicy("on", engine)
        async with rig.client() as (reader, writer):
            writer.write(request(answer.stream))
            while data := await reader.read(1 << 16):
                got += data
        await until(lambda: len(rig.ended) == 1)
        head, _, body = bytes(got).partition(b"\r\n\r\n")
        return head, body, rig


def anyhow(answer: bytes, seed: int) -> list[bytes]:
    """The bytes of an answer in pieces of any size."""
    choice, start, pieces = random.Random(seed), 0, []
    while start < len(answer):
        end = start + choice.choice((1, 2, 20, 150, 700))
        pieces.append(answer[start:end])
        start = end
    return pieces


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", EVERY)
@on_a_loop
async def test_a_client_gets_the_servers_very_bytes(name: str, framing: str) -> None:
    answer = Answer(EVERY[name], framing=framing)
    expected = facts(answer.read(answer.writes))
    as_written = [answer.head, *(data for _, data in answer.writes)]
    for writes, in_step in ((as_written, True), (anyhow(answer.head + answer.body, 7), False)):
        head, body, rig = await through(answer, writes, in_step=in_step)
        assert body == answer.body
        assert head == answer.head.removesuffix(b"\r\n\r\n") + b"\r\nConnection: close"
        assert facts(rig.ended[0].record) == expected


@pytest.mark.parametrize(("name", "events"), [("V-unknown", 1), ("V-unknown-events", 2), ("A01", 0)])
@on_a_loop
async def test_what_cannot_be_read_passes_and_is_counted(name: str, events: int) -> None:
    answer = Answer(EVERY[name])
    _, body, rig = await through(answer, [answer.head, answer.body])
    assert body == answer.body
    counted = [point for point in rig.tally.totals() if point.metric is UNPARSED]
    assert [(dict(point.attributes), point.value) for point in counted] == [({DIALECT: "openai.chat"}, events)][:events]


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("name", EVERY)
@on_a_loop
async def test_a_packed_answer_passes_packed_and_is_read(name: str, coding: str) -> None:
    answer = Answer(EVERY[name], coding)
    _, body, rig = await through(answer, anyhow(answer.head + answer.body, 3))
    assert body == answer.body
    assert facts(rig.ended[0].record) == facts(answer.read(answer.writes))


@pytest.mark.parametrize("coding", ["plain", "gzip"])
@pytest.mark.parametrize("name", EVERY)
@on_a_loop
async def test_the_middleware_sees_what_the_proxy_sees(name: str, coding: str) -> None:
    """Told of whole writes and of pieces, in runs or one by one."""
    stream = EVERY[name]
    answer = Answer(stream, coding)
    fields = [(b"content-type", stream.content_type.encode())] if stream.content_type else []
    fields += [(b"content-encoding", answer.encoding.encode())] if answer.encoding else []
    for writes in (answer.packed, anyhow(b"".join(answer.packed), 5)):
        for pause in (False, True):

            async def app(_: Scope, receive: Receive, send: Send) -> None:
                await receive()
                await send({"type": "http.response.start", "status": stream.status, "headers": fields})
                for data in writes:  # noqa: B023  run at once
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                    if pause:  # noqa: B023
                        await asyncio.sleep(0)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

            asked = {"type": "http.request", "body": stream.body, "more_body": False}
            async with way(asked, path=stream.path) as on:
                await on.run(app)
                assert b"".join(message.get("body", b"") for message in on.server.sent) == b"".join(writes)
                assert facts(on.record) == facts(answer.read(answer.writes))
                assert on.faults == 0


ASKABLE = [
    name
    for name, stream in EVERY.items()
    if stream.ask.dialect.name in DIALECTS and stream.ask.stream and stream.status == 200
]


@pytest.mark.parametrize("engine", CHUNKS)
@pytest.mark.parametrize("name", ASKABLE)
@on_a_loop
async def test_a_stream_that_was_asked_for_usage_comes_without_its_chunk(
    name: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_pass, "USAGE_HOLD_S", 1000.0)  # a slow machine must not let the finish go by itself
    stream = EVERY[name]
    answer = Answer(stream)
    for seed in range(2):
        _, body, rig = await through(answer, anyhow(answer.head + answer.body, seed), engine=engine)
        (sent,) = rig.behind.requests
        is_asked = b"include_usage" in sent.body
        assert is_asked is not (engine == "vllm" and stream.ask.choices > 1)
        is_events = stream.content_type.startswith("text/event-stream") and not stream.content_encoding
        assert unchunked(body) == (hidden(stream, engine) if is_asked and is_events else plain(stream))
        assert facts(rig.ended[0].record) == facts(answer.read(answer.writes))
