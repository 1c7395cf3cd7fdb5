"""What a sender is answered when the store cannot take its body: ask again, and nothing of it is counted."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from google.rpc.status_pb2 import Status

from collector import intake
from collector.body import MAX_JSON_BYTES
from collector.errors import UnavailableError
from collector.measurement import Batch
from collector.store import Counted
from tests.collector import exports

PROTOBUF = {"content-type": "application/x-protobuf"}


class Door:
    """A store whose `count` does as it is told; keeps the digests it saw."""

    def __init__(self, act: Callable[[], Counted]) -> None:
        self.digests: list[bytes] = []
        self._act = act

    async def count(self, digest: bytes, _batch: Batch) -> Counted:
        self.digests.append(digest)
        return self._act()


def posted(
    door: Door,
    *bodies: bytes | AsyncIterator[bytes],
    headers: dict[str, str] = PROTOBUF,
    limit: int = intake.ROOM_BYTES,
) -> list[httpx.Response]:
    """The answers to the bodies, and the counts of refusals as the last `extensions` entry."""
    app, refused, room = FastAPI(), Counter[int](), intake.Room(limit)

    @app.post("/v1/metrics")
    async def metrics(request: Request) -> Response:
        return await intake.taken("metrics", request, door, refused=refused, room=room)  # type: ignore[arg-type]

    async def story() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://c") as client:
            return [await client.post("/v1/metrics", content=body, headers=headers) for body in bodies]

    answers = asyncio.run(story())
    answers[-1].extensions["refused"] = dict(refused)
    assert room.used == 0
    return answers


def raises(error: Exception) -> Callable[[], Counted]:
    def act() -> Counted:
        raise error

    return act


BODY = exports.second(good=1, bad=0, at_s=1_800_000_000).SerializeToString()


def test_a_database_away_is_503_with_a_time_to_come_back() -> None:
    (answer,) = posted(Door(raises(UnavailableError("the database cannot commit: disk full", retry_after_s=7))), BODY)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert Status.FromString(answer.content).code == 14
    assert "disk full" in Status.FromString(answer.content).message
    assert answer.extensions["refused"] == {503: 1}


def test_a_fault_of_ours_is_500_and_tells_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    (answer,) = posted(Door(raises(RuntimeError("password=secret"))), BODY)
    assert answer.status_code == 500
    assert b"secret" not in answer.content
    assert "failed" in caplog.text


def test_what_was_refused_of_a_body_is_told() -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

    (answer,) = posted(Door(lambda: Counted(3, "3: too old")), BODY)
    partial = ExportMetricsServiceResponse.FromString(answer.content).partial_success
    assert (partial.rejected_data_points, partial.error_message) == (3, "3: too old")


def test_a_body_packed_anew_is_the_same_body() -> None:
    import gzip

    door = Door(Counted)
    posted(door, gzip.compress(BODY, 1), gzip.compress(BODY, 9), headers=PROTOBUF | {"content-encoding": "gzip"})
    posted(door, BODY, BODY + b"")
    assert len(door.digests) == 4
    assert len(set(door.digests)) == 1


def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BODY_TIMEOUT_S", 0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield BODY[:5]
        await asyncio.sleep(0.5)
        yield BODY[5:]

    (answer,) = posted(Door(Counted), slow())
    assert answer.status_code == 408


def test_more_than_there_is_room_for_is_asked_to_come_again() -> None:
    first, second = posted(Door(Counted), BODY, BODY + BODY, limit=len(BODY) + 1)
    assert (first.status_code, second.status_code) == (200, 503)
    assert "retry-after" in second.headers


def test_a_long_body_is_read_like_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "INLINE_BYTES", 10)
    good, bad = posted(Door(Counted), BODY, b"\xff" * 100)
    assert (good.status_code, bad.status_code) == (200, 400)


def test_json_is_taken_up_to_its_own_limit() -> None:
    (answer,) = posted(Door(Counted), b"{" + b" " * MAX_JSON_BYTES + b"}", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, 8)
