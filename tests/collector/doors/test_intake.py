"""What both doors do with a body: it is read, counted once, and has its place among others."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from collector.doors import intake
from collector.doors.body import JSON, PROTOBUF
from collector.doors.intake import Room
from collector.doors.reply import Refusal
from collector.errors import CollectorError, PayloadError, RefusedError, UnavailableError
from collector.values.measurement import Batch
from tests.collector import messages
from tests.collector.told_store import BODY, Told, reception


def digests(*bodies: tuple[str, str, bytes]) -> list[bytes]:
    told = Told()

    async def story() -> None:
        for kind, form, body in bodies:
            await reception(told).count(kind, form, body)  # type: ignore[arg-type]

    asyncio.run(story())
    return told.digests


def test_the_digest_is_of_the_bytes_their_kind_and_their_form() -> None:
    assert len(set(digests(("metrics", PROTOBUF, BODY), ("metrics", PROTOBUF, BODY)))) == 1
    empty = messages.in_json(messages.metrics())
    kinds = [("metrics", PROTOBUF, b""), ("traces", PROTOBUF, b""), ("metrics", JSON, empty), ("traces", JSON, empty)]
    assert len(set(digests(*kinds, ("metrics", PROTOBUF, BODY)))) == 5


@pytest.mark.parametrize(("form", "limit"), [(PROTOBUF, "INLINE_BYTES"), (JSON, "INLINE_JSON_BYTES")])
def test_a_long_body_is_read_beside_the_loop(form: str, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def decode(_body: bytes, *, json: bool) -> Batch:
        threads.append(threading.get_ident())
        return Batch()

    monkeypatch.setitem(intake._DECODE, "metrics", decode)
    longest = getattr(intake, limit)
    digests(("metrics", form, bytes(longest)), ("metrics", form, bytes(longest + 1)))
    assert threads[0] == threading.get_ident()
    assert threads[1] != threading.get_ident()


ERRORS: dict[str, tuple[Exception, Refusal]] = {
    "come again": (UnavailableError("busy", retry_after_s=7), Refusal(503, "busy", retry_after_s=7)),
    "never so": (RefusedError(415, "send gzip"), Refusal(415, "send gzip")),
    "no message": (PayloadError("not a message"), Refusal(400, "not a message")),
    "too slow": (intake.too_slow(), Refusal(408, "the body did not come within 30 s")),
    "a fault of ours": (CollectorError("password=secret"), Refusal(500, intake._OUR_FAULT)),
    "a timeout of ours": (TimeoutError("password=secret"), Refusal(500, intake._OUR_FAULT)),
}


@pytest.mark.parametrize("case", ERRORS)
def test_every_error_is_told_and_counted_once(case: str) -> None:
    error, expected = ERRORS[case]
    found = reception(Told())
    assert found.refusal(error) == expected
    assert found.refused == {expected.status: 1}


def _given_up(told: list[str], name: str) -> Callable[[UnavailableError], None]:
    return lambda _error: told.append(name)


def test_the_room_is_given_back() -> None:
    room = Room(100)
    with room.place() as first, room.place() as second:
        first.grow(40)
        first.grow(30)
        second.grow(60)
        assert room.used == 100
        second.release()
        assert room.used == 40
    assert room.used == 0


def test_without_room_the_largest_that_is_still_coming_is_given_up() -> None:
    room, told = Room(100), list[str]()
    with room.place(_given_up(told, "large")) as large, room.place(_given_up(told, "small")) as small:
        large.grow(70)
        small.grow(20)
        with room.place() as new:
            new.grow(40)
            assert (told, room.used) == (["large"], 60)


def test_a_larger_one_gives_no_smaller_one_up() -> None:
    room, told = Room(100), list[str]()
    with room.place(_given_up(told, "other")) as other, room.place() as new:
        other.grow(50)
        with pytest.raises(UnavailableError, match="room"):
            new.grow(51)
        assert (told, room.used) == ([], 50)


def test_a_whole_body_is_never_given_up() -> None:
    room, told = Room(100), list[str]()
    with room.place(_given_up(told, "whole")) as whole, room.place() as new:
        whole.grow(90)
        whole.whole()
        with pytest.raises(UnavailableError):
            new.grow(20)
        assert told == []
