"""What a sender is answered when the store cannot take its body: ask again, and nothing of it is counted."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from google.rpc.status_pb2 import Status

from collector import intake
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
    door: Door, *bodies: bytes | AsyncIterator[bytes], headers: dict[str, str] = PROTOBUF
) -> list[httpx.Response]:
    """The answers to the bodies, and the counts of refusals as the last `extensions` entry."""
    app, refused = FastAPI(), Counter[int]()

    @app.post("/v1/metrics")
    async def metrics(request: Request) -> Response:
        return await intake.taken("metrics", request, door, refused)  # type: ignore[arg-type]

    async def story() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://c") as client:
            return [await client.post("/v1/metrics", content=body, headers=headers) for body in bodies]

    answers = asyncio.run(story())
    answers[-1].extensions["refused"] = dict(refused)
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
