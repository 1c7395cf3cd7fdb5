import gc
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.http.http_head import RequestHead
from sidecar.http.http_read import (
    BadAnswerError,
    Beyond,
    Body,
    End,
    Event,
    Refusal,
    RequestReader,
    ResponseReader,
    may_be_head,
)
from sidecar.limits import MAX_RESPONSE_HEAD_BYTES

MAX_HEAD, MAX_BODY = 4096, 100_000


def reader() -> RequestReader:
    return RequestReader(max_head=MAX_HEAD, max_body=MAX_BODY)


def folded(events: list[Event]) -> list[object]:
    """Heads as (method, target, field names), neighbouring body pieces joined."""
    out: list[object] = []
    for event in events:
        if isinstance(event, RequestHead):
            out.append((event.method, event.target, tuple(name for name, _ in event.headers)))
        elif isinstance(event, Body) and out and isinstance(out[-1], bytes):
            out[-1] += event.data
        elif isinstance(event, Body):
            out.append(event.data)
        else:
            out.append(event)
    return out


TWO = (
    b"POST /a HTTP/1.1\r\nHost: h\r\ncontent-LENGTH: 5\r\n\r\nhello"
    b"PUT /b?x=%2F HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc"
    b"\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n"
    b"GET /c HTTP/1.1\r\nHost: h\r\n\r\n"
)
TWO_EVENTS = [
    (b"POST", b"/a", (b"Host", b"content-LENGTH")),
    b"hello",
    End(),
    (b"PUT", b"/b?x=%2F", (b"Host", b"Transfer-Encoding")),
    b"abcde",
    End(((b"X-T", b"1"),)),
    (b"GET", b"/c", (b"Host",)),
    End(),
]


def test_pipelined_requests_come_out_one_after_another() -> None:
    assert folded(reader().feed(TWO)) == TWO_EVENTS


@given(st.lists(st.integers(1, len(TWO) - 1), max_size=20))
def test_any_split_gives_the_same_events(cuts: list[int]) -> None:
    read, events, edges = reader(), list[Event](), [0, *sorted(set(cuts)), len(TWO)]
    for start, end in pairwise(edges):
        events += read.feed(TWO[start:end])
    assert folded(events) == TWO_EVENTS
    assert read.idle


def refusal(data: bytes) -> Refusal | None:
    found = [event for event in reader().feed(data) if isinstance(event, Refusal)]
    return found[0] if found else None


def post(fields: str, *, version: str = "1.1", body: str = "") -> bytes:
    return f"POST /v1/chat/completions HTTP/{version}\r\nHost: h\r\n{fields}\r\n{body}".encode()


REFUSED = {
    "length and chunks": (400, post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", body="0\r\n\r\n")),
    "chunks and length": (400, post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", body="0\r\n\r\n")),
    "two lengths that differ": (400, post("Content-Length: 4\r\nContent-Length: 5\r\n", body="abcd")),
    "a list of lengths": (400, post("Content-Length: 4, 4\r\n", body="abcd")),
    "a signed length": (400, post("Content-Length: +4\r\n", body="abcd")),
    "a negative length": (400, post("Content-Length: -1\r\n")),
    "an unknown coding": (400, post("Transfer-Encoding: xchunked\r\n", body="0\r\n\r\n")),
    "a packed coding": (400, post("Transfer-Encoding: gzip, chunked\r\n", body="0\r\n\r\n")),
    "chunked twice": (400, post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", body="0\r\n\r\n")),
    "chunked but not last": (400, post("Transfer-Encoding: chunked, identity\r\n", body="0\r\n\r\n")),
    "chunked behind nothing": (400, post("Transfer-Encoding: ,chunked\r\n", body="0\r\n\r\n")),
    "chunks in HTTP/1.0": (400, post("Transfer-Encoding: chunked\r\n", version="1.0", body="0\r\n\r\n")),
    "a space before the colon": (400, post("Content-Length : 4\r\n", body="abcd")),
    "a folded field": (400, post("X-A: 1\r\n  2\r\n")),
    "bare line feeds": (400, b"GET / HTTP/1.1\nHost: h\n\n"),
    "a null in a value": (400, post("X-A: a\x00b\r\n")),
    "a chunk size that is none": (400, post("Transfer-Encoding: chunked\r\n", body="zz\r\n")),
    "a chunk longer than said": (400, post("Transfer-Encoding: chunked\r\n", body="3\r\nabcdef\r\n0\r\n\r\n")),
    "no Host": (400, b"GET / HTTP/1.1\r\nA: b\r\n\r\n"),
    "two Hosts": (400, post("Host: g\r\n")),
    "not HTTP": (400, b"\x16\x03\x01\x02\x00\x01\x00"),
    "HTTP/2 in the clear": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "an unknown version": (505, b"GET / HTTP/2.0\r\nHost: h\r\n\r\n"),
    "CONNECT": (501, b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"),
    "a head that is whole and too long": (431, post(f"X-A: {'a' * MAX_HEAD}\r\n")),
    "a head that does not end": (431, post(f"X-A: {'a' * MAX_HEAD}")),
    "a target too long": (431, b"GET /" + b"a" * MAX_HEAD + b" HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a length over the limit": (413, post(f"Content-Length: {MAX_BODY + 1}\r\n")),
    "chunks over the limit": (
        413,
        post("Transfer-Encoding: chunked\r\n", body=f"{MAX_BODY + 1:x}\r\n{'x' * (MAX_BODY + 1)}"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_must_not_be_passed_on_is_refused(case: str) -> None:
    status, data = REFUSED[case]
    found = refusal(data)
    assert found is not None
    assert found.status == status
    assert "\n" not in found.message


@pytest.mark.parametrize("case", [case for case in REFUSED if "chunk size" not in case and "chunk longer" not in case])
def test_a_refused_head_never_comes_out(case: str) -> None:
    heads = [event for event in reader().feed(REFUSED[case][1]) if isinstance(event, RequestHead)]
    assert heads == [] or "chunks over" in case


def test_good_requests_before_a_bad_one_come_first() -> None:
    events = reader().feed(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nBAD\r\n\r\n")
    assert [type(event) for event in events] == [RequestHead, End, Refusal]


def test_a_drip_of_head_bytes_is_counted_over_all_reads() -> None:
    read, events = reader(), list[Event]()
    for piece in (b"GET / HTTP/1.1\r\n", *[b"X-A: aaaaaaaaaaaaaaaa\r\n"] * (MAX_HEAD // 22 + 2)):
        events += read.feed(piece)
        if events:
            break
    assert isinstance(events[-1], Refusal)
    assert events[-1].status == 431


KEEP_ALIVE = {
    "1.1 by itself": ("1.1", "", True),
    "1.1 that closes": ("1.1", "Connection: foo, Close\r\n", False),
    "1.0 by itself": ("1.0", "", False),
    "1.0 that stays": ("1.0", "Connection: Keep-Alive\r\n", True),
}


@pytest.mark.parametrize("case", KEEP_ALIVE)
def test_whether_a_connection_stays_open(case: str) -> None:
    version, fields, stays = KEEP_ALIVE[case]
    head = reader().feed(post(fields, version=version))[0]
    assert isinstance(head, RequestHead)
    assert head.keep_alive is stays


WEBSOCKET = b"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n"


@pytest.mark.parametrize("blanks", [" ", "\t", " \t "])
def test_blanks_behind_a_value_are_no_part_of_it(blanks: str) -> None:
    (head, *_) = reader().feed(post(f"Content-Length: 4{blanks}\r\nX-A: b c{blanks}\r\n", body="abcd"))
    assert isinstance(head, RequestHead)
    assert head.headers[1:] == ((b"Content-Length", b"4"), (b"X-A", b"b c"))
    assert head.has_body
    too_long = refusal(post(f"Content-Length: {MAX_BODY + 1}{blanks}\r\n"))
    assert too_long is not None
    assert too_long.status == 413


def test_no_request_hides_in_a_body_whose_length_has_a_blank_behind_it() -> None:
    hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
    fields = f"Connection: upgrade\r\nUpgrade: ws\r\nContent-Length: {len(hidden)} \r\n"
    events = folded(reader().feed(post(fields, body=hidden)))
    assert [type(event) for event in events] == [tuple, bytes, End]
    assert events[1] == hidden.encode()


def test_what_follows_an_upgrade_is_not_read_as_http() -> None:
    read = reader()
    head, end, beyond = read.feed(WEBSOCKET + b"\x81\x05")
    assert isinstance(head, RequestHead)
    assert (head.upgrade, end, beyond) == (b"websocket", End(), Beyond(b"\x81\x05"))
    assert read.feed(b"hello") == [Beyond(b"hello")]
    read.restart()
    assert folded(read.feed(b"GET /c HTTP/1.1\r\nHost: h\r\n\r\n")) == TWO_EVENTS[-2:]


def test_an_offer_of_http_2_is_passed_over_and_its_body_read() -> None:
    offer = b"POST /a HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 3\r\n\r\nabc"
    events = reader().feed(offer + b"GET /c HTTP/1.1\r\nHost: h\r\n\r\n")
    assert isinstance(events[0], RequestHead)
    assert events[0].upgrade is None
    assert folded(events)[1:] == [b"abc", End(), *TWO_EVENTS[-2:]]


def answer(data: bytes, method: bytes = b"GET") -> ResponseReader:
    """A reader that has taken the head."""
    read = ResponseReader(method=method)
    end = data.index(b"\r\n\r\n") + 4
    read.head(data[:end])
    read.body(data[end:])
    return read


def test_an_answer_keeps_its_fields_and_reason() -> None:
    read = ResponseReader(method=b"GET")
    head = read.head(b"HTTP/1.1 200 Fine  day\r\nX-a: 1\r\nX-A: 2\r\nContent-Length: 3\r\n\r\n")
    assert (head.status, head.reason, head.framing) == (200, b"Fine  day", "length")
    assert head.headers == ((b"X-a", b"1"), (b"X-A", b"2"), (b"Content-Length", b"3"))
    assert [read.body(b"a"), read.complete, read.body(b"bc"), read.complete] == [b"a", False, b"bc", True]


CHUNKS = b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-T: 1\r\n\r\n"


@given(st.lists(st.integers(1, len(CHUNKS) - 1), max_size=12))
def test_any_split_of_chunks_gives_the_same_payload(cuts: list[int]) -> None:
    read, edges, payload = ResponseReader(method=b"GET"), [0, *sorted(set(cuts)), len(CHUNKS)], b""
    read.head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for start, end in pairwise(edges):
        assert not read.complete
        payload += read.body(CHUNKS[start:end])
    assert payload == b"abcdefg"
    assert read.complete
    assert not read.surplus


def length(head: str) -> Callable[[bytes], ResponseReader]:
    return lambda body: answer(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body)


SURPLUS = {
    "another answer": length("Content-Length: 3\r\n")(b"abcHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    "nonsense": length("Content-Length: 3\r\n")(b"abcdef"),
    "after Connection: close": length("Content-Length: 3\r\nConnection: close\r\n")(b"abcdef"),
    "after the last chunk": length("Transfer-Encoding: chunked\r\n")(b"0\r\n\r\nx"),
}


@pytest.mark.parametrize("case", SURPLUS)
def test_bytes_after_the_end_are_noticed(case: str) -> None:
    assert SURPLUS[case].complete
    assert SURPLUS[case].surplus


def test_trailers_are_no_fields_of_the_head() -> None:
    reader = ResponseReader(method=b"GET")
    head = reader.head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: 1\r\n\r\n")
    assert reader.body(b"1\r\nx\r\n0\r\nB: 2\r\n") == b"x"
    assert reader.body(b"C: 3\r\n\r\n") == b""
    assert [name for name, _ in head.headers] == [b"Transfer-Encoding", b"A"]
    assert reader.trailers == ((b"B", b"2"), (b"C", b"3"))


def test_both_framing_fields_are_read_as_chunks() -> None:
    read = length("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")(CHUNKS)
    assert (read.complete, read.framing) == (True, "chunked")


BODILESS = {"HEAD": (b"HEAD", 200), "204": (b"GET", 204), "304": (b"GET", 304)}


@pytest.mark.parametrize("case", BODILESS)
def test_answers_without_a_body_are_over_with_their_head(case: str) -> None:
    method, status = BODILESS[case]
    assert answer(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\n" % status, method).complete


def test_an_interim_answer_is_followed_by_the_next_head() -> None:
    read = ResponseReader(method=b"POST")
    assert read.head(b"HTTP/1.1 100 Continue\r\n\r\n").status == 100
    assert not read.complete
    assert read.head(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n").status == 200
    assert read.body(b"x") == b"x"
    assert read.complete


ENDLESS = {
    "trailers": [b"0\r\n", *[b"X-A: aaaaaaaaaaaaaaaa\r\n"] * 20_000],
    "one trailer": [b"0\r\nX-A: ", *[b"a" * 100] * 20_000],
    "a chunk extension": [b"5;", *[b"a" * 100] * 20_000],
    "a chunk size": [b"0" * 100] * 20_000,
}


@pytest.mark.parametrize("case", ENDLESS)
def test_a_body_that_goes_on_without_a_byte_of_payload_is_refused(case: str) -> None:
    """Trailers are kept, and one long field costs the square of its length: neither may grow without limit."""
    read, took, events = reader(), 0, list[Event]()
    read.feed(post("Transfer-Encoding: chunked\r\n", body="3\r\nabc\r\n"))
    for piece in ENDLESS[case]:
        events, took = read.feed(piece), took + len(piece)
        if events:
            break
    assert isinstance(events[-1], Refusal)
    assert events[-1].status in (400, 431)
    assert took <= MAX_HEAD + 200


@pytest.mark.parametrize("case", ENDLESS)
def test_an_answer_that_goes_on_without_a_byte_of_payload_is_an_error(case: str) -> None:
    read = ResponseReader(method=b"POST")
    read.head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert read.body(b"3\r\nabc\r\n") == b"abc"
    pieces = iter(ENDLESS[case])
    with pytest.raises(BadAnswerError):
        any(map(read.body, pieces))
    left = sum(map(len, pieces))
    assert sum(map(len, ENDLESS[case])) - left <= MAX_RESPONSE_HEAD_BYTES + 200


def test_a_long_upload_in_small_chunks_is_no_endless_one() -> None:
    read = reader()
    read.feed(post("Transfer-Encoding: chunked\r\n"))
    for _ in range(MAX_HEAD):
        assert [type(event) for event in read.feed(b"1;e=x\r\na\r\n")] == [Body]
    assert read.feed(b"0\r\n\r\n") == [End()]


def test_what_was_good_of_a_read_is_kept_when_the_rest_is_not() -> None:
    read = ResponseReader(method=b"POST")
    read.head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    with pytest.raises(BadAnswerError) as caught:
        read.body(b"3\r\nabc\r\n2\r\nde\r\nzz\r\n")
    assert caught.value.payload == b"abcde"


@pytest.mark.parametrize(
    "data", [b"", b"H", b"HTTP/1.", b"HTTP/1.0 200", b"HTTP/1.1 200 OK\r\nA: b\r\n", b"\r\nHTTP/1"]
)
def test_the_beginning_of_a_head_is_waited_for(data: bytes) -> None:
    assert may_be_head(data)


@pytest.mark.parametrize(
    "data", [b"SSH-2.0-x\r\n", b"\x00", b"<html>", b"HTTP/2 200\r\n", b"http/1.1 200", b"HTTP/1.1 200 OK\nA: b\n\nhi"]
)
def test_what_can_never_be_a_head_is_not_waited_for(data: bytes) -> None:
    assert not may_be_head(data)


def test_a_head_in_one_read_may_be_no_longer_than_one_in_several() -> None:
    start, end = b"HTTP/1.1 200 OK\r\nA: ", b"\r\n\r\n"
    longest = MAX_RESPONSE_HEAD_BYTES - len(start + end)
    assert ResponseReader().head(start + b"a" * longest + end).status == 200
    with pytest.raises(BadAnswerError, match="too long"):
        ResponseReader().head(start + b"a" * (longest + 1) + end)


def test_a_body_without_framing_lasts_until_the_close() -> None:
    read = answer(b"HTTP/1.0 200 OK\r\n\r\nabc")
    assert (read.framing, read.complete) == ("close", False)


@pytest.mark.parametrize(
    "data",
    [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nA b\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 000 OK\r\n\r\n"],
)
def test_a_head_that_is_none_is_an_error(data: bytes) -> None:
    with pytest.raises(BadAnswerError):
        ResponseReader(method=b"GET").head(data)


def test_chunks_that_are_none_are_an_error() -> None:
    with pytest.raises(BadAnswerError):
        length("Transfer-Encoding: chunked\r\n")(b"zz\r\n")


HEADLESS = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "first"),
    [
        (b"GET", HEADLESS + b"hello"),
        (b"GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        (b"HEAD", HEADLESS),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ],
)
def test_a_reader_reads_the_next_answer_of_its_connection(method: bytes, first: bytes) -> None:
    """Whatever the parser makes of an answer whose body never comes."""
    read = ResponseReader(method=method)
    for _ in range(3):
        read.restart(method=method)
        size = first.index(b"\r\n\r\n") + 4
        assert read.head(first[:size]).keep_alive
        read.body(first[size:])
        assert (read.complete, read.surplus) == (True, False)
    read.restart(method=b"GET")
    assert read.head(HEADLESS).framing == "length"
    assert read.body(b"hello") == b"hello"
    assert read.trailers == ()


def test_a_reader_leaves_nothing_for_the_garbage_collector_at_each_answer() -> None:
    read = ResponseReader(method=b"GET")
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            read.restart(method=b"GET")
            read.head(HEADLESS)
            read.body(b"hello")
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "coding",
    [b"chunked", b"Chunked", b"gzip, chunked", b"gzip,chunked", b" chunked ", b"chunked,", b"chunked\t", b"chunked, ",
     b"chunked;q=1", b"xchunked", b"chunked, gzip", b"gzip", b"chunked, chunked"],
)  # fmt: skip
def test_the_framing_is_the_parsers_own(coding: bytes) -> None:
    """Else an answer would be waited for after its end, or end before it."""
    read = ResponseReader(method=b"GET")
    head = read.head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + coding + b"\r\n\r\n")
    read.body(b"5\r\nhello\r\n0\r\n\r\n")
    assert read.complete == (head.framing == "chunked")
