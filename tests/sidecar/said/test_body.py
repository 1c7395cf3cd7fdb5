"""Which bodies are read as what, and what becomes of those that cannot be."""

import gc
import gzip

import pytest

from sidecar.said.body import Body, PackedReader
from sidecar.said.dialects import Ask, read_ask, recognise


def ask(path: str = "/v1/chat/completions", body: bytes = b'{"stream": true, "messages": [{}]}') -> Ask:
    dialect = recognise(path.encode())
    assert dialect is not None
    return read_ask(dialect, body)


STREAMED, WHOLE, OLLAMA = ask(), ask(body=b"{}"), ask("/api/chat")
KINDS: dict[str, tuple[Ask, int, str, str, bool]] = {
    "server-sent events": (STREAMED, 200, "text/event-stream", "events", True),
    "with parameters and capitals": (STREAMED, 200, "Text/Event-Stream; charset=utf-8", "events", True),
    "events nobody asked for": (WHOLE, 200, "text/event-stream", "events", True),
    "newline-delimited JSON": (OLLAMA, 200, "application/x-ndjson", "events", True),
    "JSON": (WHOLE, 200, "application/json", "whole", True),
    "JSON though a stream was asked": (STREAMED, 200, "application/json; charset=utf-8", "whole", True),
    "JSON by suffix": (WHOLE, 200, "application/problem+json", "whole", True),
    "an error of a stream's type": (STREAMED, 500, "text/event-stream", "whole", True),
    "no type, stream asked": (STREAMED, 200, "", "events", False),
    "no type, no stream asked": (WHOLE, 200, "", "whole", False),
    "plain text, stream asked": (OLLAMA, 200, "text/plain", "events", False),
    "a picture": (STREAMED, 200, "image/png", "blind", True),
    "a page": (WHOLE, 200, "text/html", "blind", True),
}


@pytest.mark.parametrize("sentence", KINDS)
def test_kinds(sentence: str) -> None:
    asked, status, content_type, kind, told = KINDS[sentence]
    body = Body(asked, status, content_type=content_type, content_encoding="")
    assert (body.kind, body.told) == (kind, told)


def test_an_untold_stream_is_framed_as_its_dialect_frames() -> None:
    body = Body(OLLAMA, 200, content_type="", content_encoding="")
    assert body.feed(b'{"a":1}\n') == [(b"", b'{"a":1}')]
    body = Body(STREAMED, 200, content_type="", content_encoding="")
    assert body.feed(b"data: x\n\n") == [(b"", b"x")]


def test_a_packed_stream_gives_its_events() -> None:
    body = Body(STREAMED, 200, content_type="text/event-stream", content_encoding="gzip")
    packed = gzip.compress(b"data: a\n\ndata: b\n\ndata: c")
    assert body.feed(packed[:12]) == []
    assert body.feed(packed[12:]) == [(b"", b"a"), (b"", b"b")]
    assert body.flush() == [(b"", b"c")]
    assert body.unread == 0


@pytest.mark.parametrize("coding", ["gzip", "br, gzip"])
def test_a_body_that_cannot_be_unpacked_is_blind_and_counted_once(coding: str) -> None:
    body = Body(STREAMED, 200, content_type="text/event-stream", content_encoding=coding)
    for data in (b"data: a\n\n", b"data: b\n\n"):
        assert body.feed(data) == []
    assert body.kind == "blind"
    assert body.unread == 1
    assert body.flush() == []


def test_a_body_of_an_unread_type_is_counted_once() -> None:
    body = Body(STREAMED, 200, content_type="image/png", content_encoding="")
    assert body.unread == 0
    for data in (b"a", b"b"):
        assert body.feed(data) == []
    assert body.unread == 1


def test_a_packed_body_goes_with_its_last_reference() -> None:
    gc.collect()
    gc.disable()
    try:
        Body(STREAMED, 200, content_type="text/event-stream", content_encoding="gzip").feed(
            gzip.compress(b"data: 1\n\n")
        )
        assert not [found for found in gc.get_objects() if type(found) is PackedReader]
    finally:
        gc.enable()
