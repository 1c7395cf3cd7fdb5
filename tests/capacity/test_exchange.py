"""One question to a server, of bytes on a socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from capacity import exchange as asking
from capacity.exchange import UNANSWERED, exchange


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers once with these bytes; its URL, and what it heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def once() -> None:
            peer, _ = server.accept()
            with peer:
                heard.append(peer.recv(1 << 16))
                peer.sendall(answer)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(1 << 16):
                    pass

        thread = threading.Thread(target=once)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
        thread.join()


def test_a_question_has_its_path_and_an_answer_its_status() -> None:
    with answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno") as (url, heard):
        assert exchange(f"{url}/a/b?c=d") == (404, b"no")
    assert heard[0].startswith(b"GET /a/b?c=d HTTP/1.1\r\n")


def test_a_body_is_sent_as_json() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (url, heard):
        assert exchange(url, "POST", b"{}") == (200, b"")
    assert heard[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"content-type: application/json\r\n" in heard[0]


def test_an_answer_without_end_is_read_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MAX_ANSWER_BYTES", 10)
    with answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100) as (url, _):
        assert exchange(url) == (200, b"x" * 10)


@pytest.mark.parametrize("answer", [b"", b"\x00\x01\r\n\r\n"])
def test_what_is_no_answer_is_said_so(answer: bytes) -> None:
    with answering(answer) as (url, _), pytest.raises(UNANSWERED):
        exchange(url)
