"""OTLP over HTTP: what a sender is answered, and that nobody is kept out by another."""

import asyncio
import gc
import gzip
import socket
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from collector.doors import intake, post
from collector.doors.body import MAX_JSON_BYTES, MAX_UNPACKED_BYTES
from collector.doors.intake import Reception
from collector.doors.post import Post
from collector.errors import PayloadError, RefusedError, UnavailableError
from collector.keeping.group import Counted
from tests.collector.support import Running, ask, collector, peak_mib, until
from tests.collector.told_store import BODY, Told, raises, reception

PROTOBUF = {"content-type": "application/x-protobuf"}


def client(to: Reception) -> httpx.AsyncClient:
    """A client of OTLP before an application that knows one path."""
    app = FastAPI(openapi_url=None)

    @app.get("/other")
    async def other() -> str:
        return "other"

    return httpx.AsyncClient(transport=httpx.ASGITransport(Post(app, to)), base_url="http://c")


def posted(
    to: Reception, *bodies: bytes | AsyncIterator[bytes], headers: dict[str, str] = PROTOBUF
) -> list[httpx.Response]:
    """The answers to the bodies, one after the other."""

    async def story() -> list[httpx.Response]:
        async with client(to) as asking:
            return [await asking.post("/v1/metrics", content=body, headers=headers) for body in bodies]

    answers = asyncio.run(story())
    assert to.room.used == 0
    return answers


def test_a_database_away_is_503_with_a_time_to_come_back() -> None:
    to = reception(Told(raises(UnavailableError("the database cannot commit: disk full", retry_after_s=7))))
    (answer,) = posted(to, BODY)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert Status.FromString(answer.content).code == 14
    assert "disk full" in Status.FromString(answer.content).message
    assert to.refused == {503: 1}


def test_a_fault_of_ours_is_500_and_tells_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    (answer,) = posted(reception(Told(raises(RuntimeError("password=secret")))), BODY)
    assert answer.status_code == 500
    assert b"secret" not in answer.content
    assert "failed" in caplog.text


def test_what_was_refused_of_a_body_is_told() -> None:
    (answer,) = posted(reception(Told(lambda: Counted(3, "3: too old"))), BODY)
    partial = ExportMetricsServiceResponse.FromString(answer.content).partial_success
    assert (partial.rejected_data_points, partial.error_message) == (3, "3: too old")


def raw_deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED = {
    "gzip": ("gzip", gzip.compress(BODY, 1)),
    "gzip, packed harder": ("gzip", gzip.compress(BODY, 9)),
    "deflate": ("deflate", zlib.compress(BODY)),
    "deflate without zlib's head": ("deflate", raw_deflated(BODY)),
    "not packed": ("identity", BODY),
}


def test_a_body_packed_anew_is_the_same_body() -> None:
    told = Told()
    for encoding, body in PACKED.values():
        (answer,) = posted(reception(told), body, headers=PROTOBUF | {"content-encoding": encoding})
        assert answer.status_code == 200
    assert len(told.digests) == len(PACKED)
    assert len(set(told.digests)) == 1


def test_what_cannot_be_unpacked_is_told_what_can() -> None:
    (answer,) = posted(reception(Told()), BODY, headers=PROTOBUF | {"content-encoding": "br"})
    assert answer.status_code == 415
    assert "send gzip, deflate or identity" in Status.FromString(answer.content).message


def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BODY_TIMEOUT_S", 0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield BODY[:5]
        await asyncio.sleep(0.5)
        yield BODY[5:]

    to = reception(Told())
    (answer,) = posted(to, slow())
    assert answer.status_code == 408
    assert to.refused == {408: 1}


def test_more_than_there_is_room_for_is_asked_to_come_again() -> None:
    first, second = posted(reception(Told(), room_bytes=len(BODY) + 1), BODY, BODY + BODY)
    assert (first.status_code, second.status_code) == (200, 503)
    assert "retry-after" in second.headers


def test_a_long_body_that_comes_slowly_makes_room_for_others() -> None:
    to = reception(Told(), room_bytes=2 * len(BODY))

    async def story() -> tuple[int, int]:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield BODY + BODY[:-1]
            arrived.set()
            await go_on.wait()
            yield BODY[-1:]

        async with client(to) as asking:
            hog = asyncio.create_task(asking.post("/v1/metrics", content=slow(), headers=PROTOBUF))
            await arrived.wait()
            await asyncio.sleep(0.05)
            assert to.room.used
            prompt = await asking.post("/v1/metrics", content=BODY, headers=PROTOBUF)
            go_on.set()
            return (await hog).status_code, prompt.status_code

    assert asyncio.run(story()) == (503, 200)
    assert to.room.used == 0


def test_json_is_taken_up_to_its_own_limit() -> None:
    sent = b"{" + b" " * MAX_JSON_BYTES + b"}"
    (answer,) = posted(reception(Told()), sent, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, 8)


@dataclass
class Wire:
    """One request told to the layer itself, chunk by chunk, and what it answered."""

    chunks: list[dict[str, Any]]
    headers: list[tuple[bytes, bytes]]
    method: str = "POST"

    def answer(self, to: Reception) -> tuple[int, dict[bytes, bytes]]:
        sent: list[Any] = []

        async def receive() -> Any:
            return self.chunks.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        async def app(*_: object) -> None:
            raise AssertionError("not handed on")

        scope = {"type": "http", "method": self.method, "path": "/v1/metrics", "headers": self.headers}
        asyncio.run(Post(app, to)(scope, receive, send))
        return sent[0]["status"], dict(sent[0]["headers"])


def chunks(*parts: bytes) -> list[dict[str, Any]]:
    last = len(parts) - 1
    return [{"type": "http.request", "body": part, "more_body": i < last} for i, part in enumerate(parts)]


def test_a_refused_body_is_let_in_to_its_end_so_that_the_sender_reads_why(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(chunks(*[b"x" * 100] * 9), [(b"content-encoding", b"br")])
    assert wire.answer(reception(Told()))[0] == 415
    assert wire.chunks == []
    monkeypatch.setattr(post, "DRAIN_BYTES", 250)
    endless = Wire(chunks(*[b"x" * 100] * 9), [(b"content-encoding", b"br")])
    assert endless.answer(reception(Told()))[0] == 415
    assert len(endless.chunks) == 6


def test_a_sender_that_leaves_is_no_fault_of_ours() -> None:
    to = reception(Told())
    wire = Wire([*chunks(BODY[:9], b"")[:1], {"type": "http.disconnect"}], [(b"content-type", b"application/json")])
    assert wire.answer(to)[0] == 400
    assert to.refused == {400: 1}


def test_a_body_that_has_not_come_by_the_end_is_to_be_sent_again(tmp_path: Path) -> None:
    head = b"POST /v1/metrics HTTP/1.1\r\nhost: c\r\ncontent-type: application/x-protobuf\r\ncontent-length: 99\r\n\r\n"
    with collector(tmp_path, "--drain-timeout", "1s") as running:
        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as sender:
            sender.sendall(head + b"x")
            until(lambda: b"ready" in ask(f"{running.url}/readyz").body)
            assert running.stop() == 0
            answer = sender.recv(4096)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: " in answer
    assert "Traceback" not in running.log.read_text()


def test_others_have_their_turn_while_a_body_is_unpacked() -> None:
    """A small body that unpacks to megabytes must not hold the loop for as long as that takes."""
    turns = 0

    async def story() -> int:
        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        async with client(reception(Told())) as asking:
            packed = gzip.compress(bytes(MAX_UNPACKED_BYTES + 1))
            before = turns
            answer = await asking.post("/v1/metrics", content=packed, headers=PROTOBUF | {"content-encoding": "gzip"})
        beside.cancel()
        assert answer.status_code == 413
        return turns - before

    assert asyncio.run(story()) >= MAX_UNPACKED_BYTES >> 20


def test_otlp_is_posted_and_all_else_is_handed_on() -> None:
    async def story() -> list[httpx.Response]:
        async with client(reception(Told())) as asking:
            return [await asking.get("/v1/traces"), await asking.get("/other"), await asking.post("/v1/logs")]

    got, other, logs = asyncio.run(story())
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert (other.status_code, other.json()) == (200, "other")
    assert logs.status_code == 404


BOMB = bytes(200 << 20)
BOMBS: dict[str, tuple[str, bytes, int]] = {
    "gzip": ("gzip", gzip.compress(BOMB), 413),
    "deflate": ("deflate", zlib.compress(BOMB), 413),
    "many members": ("gzip", gzip.compress(BOMB[: 40 << 20]) * 5, 413),
    "a bad checksum": ("gzip", gzip.compress(BOMB[: 20 << 20])[:-8] + bytes(8), 400),
    "cut off": ("gzip", gzip.compress(BOMB[: 20 << 20])[:-9], 400),
    "packed twice": ("gzip, gzip", gzip.compress(gzip.compress(BOMB)), 415),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with collector(tmp_path_factory.mktemp("post"), "--tick", "1s") as running:
        yield running


@pytest.mark.parametrize("case", BOMBS)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_e09_a_bomb_is_refused_in_little_memory(shared: Running, case: str, is_chunked: bool) -> None:
    encoding, packed, status = BOMBS[case]
    before = peak_mib(shared)

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(packed), 10_000):
            yield packed[start : start + 10_000]

    async def story() -> httpx.Response:
        async with httpx.AsyncClient(timeout=30) as asking:
            headers = PROTOBUF | {"content-encoding": encoding}
            sent = parts() if is_chunked else packed
            return await asking.post(f"{shared.url}/v1/metrics", content=sent, headers=headers)

    assert asyncio.run(story()).status_code == status
    assert peak_mib(shared) - before < 64
    assert ask(f"{shared.url}/v1/metrics", BODY, content_type="application/x-protobuf").status == 200


def test_the_interface_describes_both_paths(shared: Running) -> None:
    paths: dict[str, Any] = ask(f"{shared.url}/api/openapi.json").json["paths"]
    for path in post.KINDS:
        described = paths[path]["post"]
        assert set(described["requestBody"]["content"]) == {"application/x-protobuf", "application/json"}
        assert {"200", "400", "408", "413", "415", "503"} == set(described["responses"])
    assert "/api/v1/status" in paths


REFUSED = {
    "bytes that are none": b"\xff" * 1000,
    "a length beyond the limit": bytes(MAX_UNPACKED_BYTES + 1),
    "no gzip": b"no gzip",
    "a gzip that ends too early": gzip.compress(BODY)[:-9],
    "a database that is away": BODY,
}


@pytest.mark.parametrize("case", REFUSED)
def test_of_a_refused_body_nothing_is_kept(case: str) -> None:
    """An error holds the frames that it came through, and these the body: no cycle may keep it until garbage is looked
    for, which is seldom."""

    def away() -> Counted:
        raise UnavailableError("away")

    to = reception(Told(away))
    packed = {**PROTOBUF, "content-encoding": "gzip"} if "gzip" in case else PROTOBUF
    posted(to, REFUSED[case], headers=packed)
    gc.collect()
    gc.disable()
    try:
        (answer,) = posted(to, REFUSED[case], headers=packed)
        assert answer.status_code >= 400
        held = [
            one for one in gc.get_objects() if issubclass(type(one), PayloadError | RefusedError | UnavailableError)
        ]
        assert [one for one in held if one.__traceback__ is not None] == []
    finally:
        gc.enable()
