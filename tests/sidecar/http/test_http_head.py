from dataclasses import replace

import pytest

from sidecar.http.http_head import (
    Framing,
    Headers,
    RequestHead,
    ResponseHead,
    find,
    find_all,
    forwarded_request,
    forwarded_response,
    in_origin_form,
    interim_response,
    response_framing,
    tokens,
)
from sidecar.http.http_read import ResponseReader


def request(*headers: tuple[bytes, bytes], minor: int = 1, upgrade: bytes | None = None) -> RequestHead:
    return RequestHead(b"POST", b"/v1/x%2Fy?q=1%2B1&q=", minor, headers, keep_alive=True, upgrade=upgrade)


def sent(head: RequestHead, *, host: bytes | None = None, traceparent: bytes | None = None, prefix: bytes = b"") -> str:
    return forwarded_request(head, prefix=prefix, host=host, traceparent=traceparent).decode()


HOST = (b"Host", b"api.test")
SIZED = (HOST, (b"X", b"10"), (b"content-LENGTH", b"10"), (b"Y", b"10"))


def test_a_request_goes_through_as_it_came() -> None:
    headers = (HOST, (b"X-B", b"2"), (b"x-a", b"1"), (b"X-B", b"3"), (b"Content-Length", b"0"))
    assert sent(request(*headers)) == (
        "POST /v1/x%2Fy?q=1%2B1&q= HTTP/1.1\r\n"
        "Host: api.test\r\nX-B: 2\r\nx-a: 1\r\nX-B: 3\r\nContent-Length: 0\r\n\r\n"
    )


def test_fields_of_one_connection_end_here() -> None:
    dropped = ((b"Connection", b"keep-alive, X-Drop"), (b"X-Drop", b"1"), (b"Keep-Alive", b"9"), (b"TE", b"gzip"))
    assert sent(request(HOST, *dropped)).split("\r\n")[1:] == ["Host: api.test", "", ""]


@pytest.mark.parametrize("name", [b"host", b"content-length", b"transfer-encoding"])
def test_connection_cannot_take_away_what_frames_a_message(name: bytes) -> None:
    head = request(HOST, (b"Connection", name), (b"Content-Length", b"3"), (b"Transfer-Encoding", b"chunked"))
    assert name.decode() in sent(head).lower().replace("connection:", "")


def test_host_is_kept_unless_told_otherwise() -> None:
    assert "Host: api.test\r\n" in sent(request(HOST))
    assert "Host: engine:8000\r\n" in sent(request(HOST), host=b"engine:8000")
    assert "Host: \r\n" in sent(request(minor=0))  # an HTTP/1.0 client without one


def test_our_traceparent_takes_the_place_of_every_one_that_came() -> None:
    head = request(HOST, (b"Traceparent", b"old"), (b"A", b"1"), (b"traceparent", b"older"))
    assert sent(head, traceparent=b"new").split("\r\n")[1:4] == ["Host: api.test", "Traceparent: new", "A: 1"]
    assert "older" not in sent(head, traceparent=b"new")
    assert sent(request(HOST), traceparent=b"new").endswith("traceparent: new\r\n\r\n")
    assert "old" in sent(head)


def test_a_base_path_stands_before_the_raw_target() -> None:
    assert sent(request(HOST), prefix=b"/llm").startswith("POST /llm/v1/x%2Fy?q=1%2B1&q= HTTP/1.1\r\n")


def test_a_base_path_stands_before_no_star() -> None:
    head = RequestHead(b"OPTIONS", b"*", 1, (HOST,), keep_alive=True)
    assert sent(head, prefix=b"/llm").startswith("OPTIONS * HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("target", "expected", "host"),
    [
        (b"http://api.test:8000/v1/x?u=http://y/", b"/v1/x?u=http://y/", b"api.test:8000"),
        (b"https://user:key@api.test/v1", b"/v1", b"api.test"),
        (b"http://api.test", b"/", b"api.test"),
        (b"http://api.test?q=1", b"/?q=1", b"api.test"),
        (b"http://[::1]:80/", b"/", b"[::1]:80"),
        (b"/v1?u=http://y/", b"/v1?u=http://y/", b"h"),
        (b"/a://b", b"/a://b", b"h"),
        (b"*", b"*", b"h"),
    ],
)
def test_a_whole_url_as_target_becomes_path_and_host(target: bytes, expected: bytes, host: bytes) -> None:
    fields = ((b"X-A", b"1"), (b"hOST", b"h"))
    assert in_origin_form(target, fields) == (expected, ((b"X-A", b"1"), (b"hOST", host)))


def test_an_upgrade_is_passed_on_as_one() -> None:
    head = request(HOST, (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), upgrade=b"websocket")
    assert sent(head).count("Upgrade") == 2
    assert "Connection: Upgrade\r\nUpgrade: websocket\r\n" in sent(head)


def response(*headers: tuple[bytes, bytes], framing: Framing = "length", status: int = 200) -> ResponseHead:
    return ResponseHead(status, b"Fine  day", headers, keep_alive=True, framing=framing)


def test_a_response_keeps_names_order_duplicates_and_reason() -> None:
    headers = ((b"SET-Cookie", b"a"), (b"Content-Length", b"2"), (b"SET-Cookie", b"b"))
    assert forwarded_response(response(*headers), minor=1, keep=True) == (
        b"HTTP/1.1 200 Fine  day\r\nSET-Cookie: a\r\nContent-Length: 2\r\nSET-Cookie: b\r\n\r\n"
    )


RAW = b"HTTP/1.1 200 OK\r\nx-a:1\r\ncontent-length:  0 \r\n\r\n"


def test_a_head_that_nothing_is_changed_in_goes_as_the_bytes_that_came() -> None:
    head = ResponseReader().head(RAW)
    assert forwarded_response(head, minor=1, keep=True) == head.raw == RAW
    changed = {
        "the connection ends": forwarded_response(head, minor=1, keep=False),
        "an HTTP/1.0 client": forwarded_response(head, minor=0, keep=True),
        "an HTTP/1.0 server": forwarded_response(
            ResponseReader().head(RAW.replace(b"1.1", b"1.0")), minor=1, keep=True
        ),
        "a field of one connection": forwarded_response(
            ResponseReader().head(RAW.replace(b"x-a", b"connection:keep-alive\r\nx-a")), minor=1, keep=True
        ),
        "a blank line before it": forwarded_response(ResponseReader().head(b"\r\n" + RAW), minor=1, keep=True),
    }
    for case, out in changed.items():
        assert out.startswith(b"HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: "), case


def test_a_head_made_from_another_is_no_bytes_that_came() -> None:
    head = replace(ResponseReader().head(RAW), headers=((b"a", b"b"),))
    assert forwarded_response(head, minor=1, keep=True) == b"HTTP/1.1 200 OK\r\na: b\r\n\r\n"


def test_case_b04_one_framing_field_and_no_hop_by_hop() -> None:
    headers = ((b"Connection", b"keep-alive, X-Drop"), (b"X-Drop", b"1"), (b"Keep-Alive", b"timeout=5"))
    framed = ((b"Content-Length", b"15"), (b"Transfer-Encoding", b"chunked"))
    out = forwarded_response(response(*headers, *framed, framing="chunked"), minor=1, keep=True)
    assert out == b"HTTP/1.1 200 Fine  day\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_case_b06_an_http_10_client_is_told_of_no_chunks() -> None:
    chunked = response((b"Transfer-Encoding", b"chunked"), framing="chunked")
    assert forwarded_response(chunked, minor=0, keep=False) == b"HTTP/1.1 200 Fine  day\r\nConnection: close\r\n\r\n"
    assert b"Connection: keep-alive" in forwarded_response(response(), minor=0, keep=True)


def test_an_interim_response_goes_as_it_came() -> None:
    hints = response((b"Link", b"</a>"), status=103, framing="none")
    assert interim_response(hints) == b"HTTP/1.1 103 Fine  day\r\nLink: </a>\r\n\r\n"


LENGTH: Headers = ((b"Content-Length", b"3"),)
CHUNKED: Headers = ((b"Transfer-Encoding", b"gzip, Chunked"),)
FRAMINGS = {
    "a length": (200, LENGTH, b"GET", "length"),
    "chunks, whatever packs them": (200, CHUNKED, b"GET", "chunked"),
    "both: the chunks win": (200, LENGTH + CHUNKED, b"GET", "chunked"),
    "neither: until the close": (200, (), b"GET", "close"),
    "a coding that does not end in chunks": (200, ((b"Transfer-Encoding", b"gzip"),), b"GET", "close"),
    "HEAD has no body": (200, LENGTH, b"HEAD", "none"),
    "204 has no body": (204, (), b"GET", "none"),
    "304 has no body, though it may have a length": (304, LENGTH, b"GET", "none"),
    "1xx has no body": (103, (), b"GET", "none"),
}


@pytest.mark.parametrize("case", FRAMINGS)
def test_how_a_body_ends(case: str) -> None:
    status, headers, method, expected = FRAMINGS[case]
    assert response_framing(ResponseHead(status, b"", headers, keep_alive=True), method=method) == expected


def test_fields_are_found_whatever_their_case() -> None:
    headers = ((b"A", b"1"), (b"a", b"2"), (b"B", b" x , Y,, "))
    assert find(headers, b"a") == b"1"
    assert find(headers, b"c") is None
    assert find_all(headers, b"a") == [b"1", b"2"]
    assert tokens(headers[2][1]) == [b"x", b"y"]


@pytest.mark.parametrize("host", [None, b"other.test"])
def test_the_length_follows_the_body_and_nothing_else_changes(host: bytes | None) -> None:
    before = sent(request(*SIZED), host=host)
    after = forwarded_request(request(*SIZED), prefix=b"", host=host, traceparent=None, length=77).decode()
    assert "content-LENGTH: 77\r\n" in after
    assert after == before.replace("content-LENGTH: 10", "content-LENGTH: 77")


def test_a_request_in_chunks_has_no_length_to_follow() -> None:
    chunked = request(HOST, (b"Transfer-Encoding", b"chunked"))
    assert forwarded_request(chunked, prefix=b"", host=None, traceparent=None, length=77).decode() == sent(chunked)
