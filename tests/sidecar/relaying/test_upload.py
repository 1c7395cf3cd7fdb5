"""A request's way out, without a socket: what is gathered, held, given out and given out again."""

from dataclasses import dataclass

from sidecar.http.http_head import RequestHead
from sidecar.relaying.upload import Upload
from sidecar.said.dialects import LOOK_BYTES
from tests.sidecar.rig import AtOnce

HOST = (b"host", b"api.test")
SENT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: api.test\r\n"


@dataclass
class Watched:
    """Stands for the watch: asks with `asked`, where it asks at all."""

    asks: bool = False
    asked: bytes = b""
    traceparent: bytes = b"00-0-0-01"
    seen: bytes = b""
    held_at_ns: int | None = None

    def may_be_shed(self) -> bool:
        return False

    def body(self, data: bytes) -> None:
        self.seen += data

    def came(self, body: bytes, at_ns: int) -> None:
        self.seen, self.held_at_ns = body, at_ns

    def held(self, at_ns: int) -> None:
        self.held_at_ns = at_ns

    def may_ask(self, _: RequestHead) -> bool:
        return self.asks

    def asking(self, body: bytes) -> bytes:
        return self.asked or body


def upload(watch: Watched | None = None, *, chunked: bool = False, length: int | None = None) -> Upload:
    size = ((b"content-length", b"%d" % length),) if length is not None else ()
    coding = ((b"transfer-encoding", b"chunked"),) if chunked else ()
    head = RequestHead(
        b"POST", b"/v1/chat/completions", 1, (HOST, *size, *coding), keep_alive=True, chunked=chunked, length=length
    )
    found = Upload(head, watch, AtOnce())  # type: ignore[arg-type]
    found.begin(prefix=b"", host=None)
    return found


def test_what_came_in_one_read_leaves_in_one_write() -> None:
    found = upload(length=4)
    found.body(b"ab")
    found.body(b"cd")
    found.end((), 1)
    assert found.take() == SENT + b"content-length: 4\r\n\r\nabcd"
    assert found.take() == b""
    assert (found.writes, found.unsent_bytes, found.whole) == (1, 0, True)


def test_chunks_and_trailers_are_framed_anew() -> None:
    found = upload(chunked=True)
    found.body(b"a" * 17)
    found.end(((b"X-T", b"1"),), 1)
    assert found.take().endswith(b"\r\n\r\n11\r\n" + b"a" * 17 + b"\r\n0\r\nX-T: 1\r\n\r\n")


def test_the_first_write_can_be_given_out_again_with_what_came_since() -> None:
    found = upload(length=4)
    found.body(b"ab")
    first = found.take()
    found.body(b"cd")
    assert found.unsent_bytes == 2
    found.repeat()
    assert (found.writes, found.unsent_bytes) == (0, len(first) + 2)
    assert found.take() == first + b"cd"


def test_the_watch_sees_the_body_and_when_it_was_whole() -> None:
    watch = Watched()
    found = upload(watch, length=4)
    found.body(b"abcd")
    assert watch.held_at_ns is None
    found.end((), 7)
    assert watch.held_at_ns is None
    assert b"traceparent: 00-0-0-01\r\n" in found.take()
    found.looked_at()
    assert (watch.seen, watch.held_at_ns) == (b"abcd", 7)


def test_a_request_that_may_be_asked_is_held_until_it_is_whole() -> None:
    found = upload(Watched(asks=True, asked=b"abcdef"), length=4)
    found.body(b"ab")
    assert found.take() == b""
    found.body(b"cd")
    found.end((), 1)
    assert found.take().endswith(b"content-length: 6\r\ntraceparent: 00-0-0-01\r\n\r\nabcdef")


def test_one_too_long_to_look_into_goes_as_it_came() -> None:
    found = upload(Watched(asks=True, asked=b"never"), length=LOOK_BYTES + 1)
    found.body(b"a" * LOOK_BYTES)
    assert found.take() == b""
    found.body(b"b")
    found.end((), 1)
    assert found.take().endswith(b"\r\n\r\n" + b"a" * LOOK_BYTES + b"b")


def test_a_request_in_one_piece_leaves_at_once_asked_where_it_may_be() -> None:
    body = b'{"stream":true}'
    for asks, text in ((False, body), (True, b'{"asked":true,"stream":true}')):
        watch = Watched(asks=asks, asked=text)
        found = upload(watch, length=len(body))
        found.at_once(body, 7)
        assert (found.whole, found.unsent_bytes > len(text)) == (True, True)
        size = b"content-length: %d\r\ntraceparent: 00-0-0-01\r\n\r\n" % len(text)
        assert found.take() == SENT + size + text
        found.looked_at()
        found.looked_at()
        assert (watch.seen, watch.held_at_ns) == (body, 7)


def test_one_that_speaks_of_no_stream_is_not_asked() -> None:
    found = upload(Watched(asks=True, asked=b"never"), length=2)
    found.at_once(b"{}", 7)
    assert found.take().endswith(b"\r\n\r\n{}")
