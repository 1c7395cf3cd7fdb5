"""Questions over real sockets: answers are values whatever a server does."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from firsttoken.doctor import ask
from firsttoken.doctor.address import Address
from firsttoken.doctor.ask import Answer, get, together
from firsttoken.http_json import NOTHING_ASKED, Access
from tests.firsttoken.doctor.front import Front, front


@contextmanager
def speaking(*parts: bytes, pause_s: float = 0.0) -> Iterator[Address]:
    """A server that says these bytes to its first client, whatever that asks."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak() -> None:
            client, _ = listening.accept()
            with client, suppress(ConnectionError):
                client.recv(65536)
                for part in parts:
                    client.sendall(part)
                    time.sleep(pause_s)

        thread = threading.Thread(target=speak)
        thread.start()
        yield Address(f"http://127.0.0.1:{listening.getsockname()[1]}")
        thread.join()


def test_an_answer_has_status_headers_body_and_its_moments() -> None:
    with front(Front({"/x": b'{"a": 1}'}, {"X-Y": "z"})) as server:
        answer = get(Address(server.url), "/x", access=NOTHING_ASKED)
    assert (answer.status, answer.json, answer.headers["x-y"]) == (200, {"a": 1}, "z")
    assert answer.is_fine
    assert answer.trouble == ""
    assert 0 < answer.sent_s <= answer.received_s
    assert answer.offset_s is not None
    assert abs(answer.offset_s) < 2


def test_a_token_is_shown_unless_the_address_has_its_own() -> None:
    with front(Front()) as server:
        get(Address(server.url), "/", access=Access("t"))
        get(Address(server.url, "Basic abc"), "/", access=Access("t"))
        get(Address(server.url), "/", access=NOTHING_ASKED)
    assert [headers.get("Authorization") for _, headers in server.asked] == ["Bearer t", "Basic abc", None]


def test_what_is_refused_or_not_there_is_told() -> None:
    with front(Front()) as server:
        answer = get(Address(server.url), "/none", access=NOTHING_ASKED)
    assert (answer.status, answer.json, answer.trouble) == (404, None, "answers 404")
    gone = get(Address(server.url), "/", access=NOTHING_ASKED)
    assert (gone.status, gone.trouble) == (0, "does not answer: connection refused")


FAULTS = {
    "no HTTP": ((b"220 smtp ready\r\n\r\n",), "does not answer: "),
    "nothing at all": ((), "does not answer: "),
    "half a body": ((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",), ""),
    "a broken chunk": ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",), "does not answer: "),
}


@pytest.mark.parametrize(("parts", "trouble"), FAULTS.values(), ids=FAULTS.keys())
def test_bytes_that_are_no_answer_raise_nothing(parts: tuple[bytes, ...], trouble: str) -> None:
    with speaking(*parts) as where:
        answer = get(where, "/", access=NOTHING_ASKED)
    assert answer.trouble.startswith(trouble)


def test_a_body_has_its_limits_in_length_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "MAX_BYTES", 10)
    with speaking(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 11) as where:
        assert "MiB" in get(where, "/", access=NOTHING_ASKED).error
    drip: tuple[bytes, ...] = (b"HTTP/1.1 200 OK\r\n\r\n", *[b"x"] * 6)
    with speaking(*drip, pause_s=0.05) as where:
        assert "does not end" in get(where, "/", access=NOTHING_ASKED, timeout_s=0.15).error


HEADS = {
    "comes byte by byte": tuple(bytes([one]) for one in b"HTTP/1.1 200 OK"),
    "is put off for ever": (b"HTTP/1.1 100 Continue\r\n\r\n",) * 15,
    "never comes": (b"",) * 15,
}


@pytest.mark.parametrize("parts", HEADS.values(), ids=HEADS.keys())
def test_a_head_has_its_limit_in_time(parts: tuple[bytes, ...]) -> None:
    with speaking(*parts, pause_s=0.05) as where:
        assert get(where, "/", access=NOTHING_ASKED, timeout_s=0.15).error == "does not answer: timed out"


def test_many_are_asked_at_once_and_answered_in_order() -> None:
    with front(Front({f"/{place}": str(place).encode() for place in range(20)})) as server:
        asked = (partial(get, Address(server.url), f"/{place}", access=NOTHING_ASKED) for place in range(20))
        assert [answer.text for answer in together(asked)] == [str(place) for place in range(20)]


def test_json_that_is_none_is_nothing() -> None:
    assert Answer("u", 200, b"<html>").json is None
    assert Answer("u", 200, b"[" * 100_000).json is None
    assert Answer("u", 500, b"{}").json is None


DATES = {
    "Mon, 30 Nov 2026 22:00:10 GMT": 10.5,
    "Mon, 30 Nov 2026 22:00:00 GMT": 0.5,
    "yesterday": None,
}


@pytest.mark.parametrize(("date", "offset_s"), DATES.items(), ids=DATES.keys())
def test_a_clock_is_read_off_the_date(date: str, offset_s: float | None) -> None:
    at_s = 1_796_076_000.0  # 22:00:00 that day
    answer = Answer("u", 200, headers={"date": date}, sent_s=at_s - 1, received_s=at_s + 1)
    assert answer.offset_s == offset_s
    kept = Answer("u", 200, headers={"date": date, "age": "60"}, sent_s=at_s, received_s=at_s)
    assert kept.offset_s is None
    assert Answer("u", 200).offset_s is None
