"""The edit of a request's body: what it may touch, and that the rest stays, byte for byte."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.http.http_head import RequestHead
from sidecar.said.dialects import LOOK_BYTES
from sidecar.usage.usage_ask import OPTIONS, accepts_packing, can_edit, edited, edited_at_a_glance

ADDED = b'"stream_options":{"include_usage":true},'

EDITS = {
    "absent: it becomes the first member": (b'{"stream":true}', b"{" + ADDED + b'"stream":true}'),
    "white space stays": (b' \n{ "stream" : true }\r\n', b" \n{" + ADDED + b' "stream" : true }\r\n'),
    "null: the object stands in its place": (
        b'{"stream_options": null ,"stream":true}',
        b'{"stream_options": {"include_usage":true} ,"stream":true}',
    ),
    "false becomes true": (
        b'{"stream":true,"stream_options":{ "include_usage" : false }}',
        b'{"stream":true,"stream_options":{ "include_usage" : true }}',
    ),
    "a key that is spelled with escapes is the key": (
        rb'{"stream":true,"stream\u005foptions":null}',
        rb'{"stream":true,"stream\u005foptions":{"include_usage":true}}',
    ),
    "stream_options of a message are no options": (
        b'{"messages":[{"stream_options":null,"stream":false}],"stream":true}',
        b"{" + ADDED + b'"messages":[{"stream_options":null,"stream":false}],"stream":true}',
    ),
    "nested ones before the real ones": (
        b'{"tools":[{"stream_options":null}],"x":{"stream_options":null},"stream":true,"stream_options":null}',
        b'{"tools":[{"stream_options":null}],"x":{"stream_options":null},"stream":true,"stream_options":%b}' % OPTIONS,
    ),
    "text that looks like options": (
        rb'{"prompt":"\"stream_options\":null,{[\\","stream":true,"stream_options":null}',
        rb'{"prompt":"\"stream_options\":null,{[\\","stream":true,"stream_options":{"include_usage":true}}',
    ),
    "numbers and duplicates of others stay as they are written": (
        b'{"n":1.0,"n":1e0,"seed":123456789012345678901234567890,"stream":true}',
        b"{" + ADDED + b'"n":1.0,"n":1e0,"seed":123456789012345678901234567890,"stream":true}',
    ),
}
UNTOUCHED = {
    "asked for": b'{"stream":true,"stream_options":{"include_usage":true}}',
    "an empty object: true to some servers": b'{"stream":true,"stream_options":{}}',
    "another option beside it": b'{"stream":true,"stream_options":{"include_usage":false,"other":1}}',
    "only another option": b'{"stream":true,"stream_options":{"continuous_usage_stats":true}}',
    "no boolean": b'{"stream":true,"stream_options":{"include_usage":0}}',
    "null within": b'{"stream":true,"stream_options":{"include_usage":null}}',
    "no object": b'{"stream":true,"stream_options":[]}',
    "told twice": b'{"stream":true,"stream_options":null,"stream_options":null}',
    "told twice within": b'{"stream":true,"stream_options":{"include_usage":false,"include_usage":false}}',
    "stream told twice": b'{"stream":false,"stream":true}',
    "no stream": b'{"stream":false}',
    "no word of stream": b'{"model":"m"}',
    "stream as a number": b'{"stream":1}',
    "no object at all": b"[true]",
    "not JSON": b'{"stream":true',
    "more than JSON": b'{"stream":NaN,"stream":true}',
    "empty": b"",
    "not UTF-8": b'{"x":"\xff","stream":true}',
}


@pytest.mark.parametrize(("body", "text"), EDITS.values(), ids=EDITS)
def test_only_the_ask_is_written(body: bytes, text: bytes) -> None:
    assert edited(body) == text


@pytest.mark.parametrize("body", UNTOUCHED.values(), ids=UNTOUCHED)
def test_what_is_not_plainly_safe_is_left_alone(body: bytes) -> None:
    assert edited(body) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12) | st.sampled_from(["stream_options", '"stream_options":null', "{", "}", "\\"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["a", "stream", "stream_options", 'q"', "x\\"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
bodies = st.dictionaries(st.sampled_from(["model", "messages", "n", "ü", 'k"']) | st.text(max_size=5), json_values)


@given(
    fields=bodies,
    place=st.integers(0, 8),
    options=st.sampled_from([..., None, {"include_usage": False}]),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 0, 2]),
)
def test_the_body_says_the_same_and_asks(
    fields: dict[str, Any], place: int, options: Any, ascii_only: bool, indent: int | None
) -> None:
    items = [(key, value) for key, value in fields.items() if key not in ("stream", "stream_options")]
    items.insert(place % (len(items) + 1), ("stream", True))
    if options is not ...:
        items.insert(place * 3 % (len(items) + 1), ("stream_options", options))
    body = json.dumps(dict(items), ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    text = edited(body)
    try:
        orjson.loads(body)
    except ValueError:
        assert text is None
        return
    assert text is not None
    assert edited_at_a_glance(body) in (None, text)
    assert json.loads(text) == dict(items) | {"stream_options": {"include_usage": True}}
    old, new = (b"", ADDED) if options is ... else (b"null", OPTIONS) if options is None else (b"false", b"true")
    assert text in (body[:at] + new + body[at + len(old) :] for at in range(len(body)) if body[at:].startswith(old))


@given(st.binary(max_size=80) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_no_bytes_raise(body: bytes) -> None:
    edited(body)
    edited(b'{"stream":true,"stream_options":null,"x":"' + body + b'"}')


def head(*fields: tuple[bytes, bytes], length: int | None = 10, chunked: bool = False, **more: Any) -> RequestHead:
    return RequestHead(
        b"POST", b"/v1/chat/completions", 1, fields, keep_alive=True, length=length, chunked=chunked, **more
    )


HEADS = {
    "a plain one": (head(), True),
    "as long as is looked into": (head(length=LOOK_BYTES), True),
    "longer": (head(length=LOOK_BYTES + 1), False),
    "chunks of any length": (head(length=None, chunked=True), True),
    "no body": (head(length=0), False),
    "compressed": (head((b"Content-Encoding", b"gzip")), False),
    "compressed, told after another": (head((b"Content-Encoding", b"identity"), (b"content-encoding", b"br")), False),
    "not compressed, and says so": (head((b"Content-Encoding", b"identity")), True),
    "waits for the server": (head((b"Expect", b"100-continue")), False),
    "another protocol": (head(upgrade=b"websocket"), False),
    "a digest of the body": (head((b"Content-Digest", b"sha-256=:x:")), False),
    "an older digest": (head((b"Digest", b"md5=x")), False),
    "a checksum": (head((b"Content-MD5", b"x")), False),
    "a signature": (head((b"Signature-Input", b"sig=()")), False),
    "a signed request of a cloud": (head((b"X-Amz-Content-Sha256", b"x")), False),
    "signed in the authorization": (head((b"Authorization", b"AWS4-HMAC-SHA256 x")), False),
    "a bearer token": (head((b"Authorization", b"Bearer x")), True),
}


@pytest.mark.parametrize(("request_head", "editable"), HEADS.values(), ids=HEADS)
def test_which_requests_can_take_an_edit(request_head: RequestHead, editable: bool) -> None:
    assert can_edit(request_head) is editable


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (None, False), (b"", False), (b"identity", False), (b"gzip", True), (b"identity;q=1, br;q=0.5", True),
        (b"gzip;q=0", False), (b"gzip; q=0.000", False), (b"*", True), (b"*;q=0, identity", False),
    ],
)  # fmt: skip
def test_whether_a_client_takes_a_compressed_answer(value: bytes | None, accepted: bool) -> None:
    assert accepts_packing(head() if value is None else head((b"Accept-Encoding", value))) is accepted
