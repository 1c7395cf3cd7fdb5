"""Asking a server for its token count in a request of somebody else's: which requests can take it, and the edit.

OpenAI's `stream_options: {"include_usage": true}` makes a server end a stream with a chunk that holds its own count.
The edit puts that text into the body as it came: not a byte of the client's is written anew, so numbers, the order of
keys and their spelling stay. Whatever is not plainly safe is not edited, and `edited` says None:

    stream_options in the body     becomes
    ---------------------------    ----------------------------------------------------------------------------
    absent                         the first member of the body
    null                           the object, in its place
    {"include_usage": false}       true, in its place
    anything else                  None: other options may mean something only together with it, and an empty
                                   object means true to some servers and false to others
"""

import functools
import re
from collections.abc import Iterator

import orjson

from sidecar.http.head_shape import MAX_SHAPES
from sidecar.http.http_head import RequestHead, tokens
from sidecar.said.dialects import LOOK_BYTES
from sidecar.said.facts import Json

OPTIONS = b'{"include_usage":true}'
MEMBER = b'"stream_options":%b,' % OPTIONS

# Headers that seal the body: an edited one would no longer be what they say.
_SEALED = re.compile(rb"digest|signature|content-md5|content-sha256")
_SIGNED = (b"aws4-", b"hmac", b"signature")


def can_edit(head: RequestHead) -> bool:
    """Whether the body behind `head` may be held until it is whole, and changed."""
    if not head.chunked and not 0 < (head.length or 0) <= LOOK_BYTES:
        return False
    if head.upgrade is not None or _is_sealed(head.shape.names):
        return False
    if b"content-encoding" in head.shape.places and not _is_bare(head):
        return False
    return not (head.find(b"authorization") or b"").lower().startswith(_SIGNED)


@functools.lru_cache(maxsize=MAX_SHAPES)
def _is_sealed(names: tuple[bytes, ...]) -> bool:
    """Whether fields of these names keep the body as it is. The client of an `Expect` sends none until the server has
    seen the head."""
    return b"expect" in names or _SEALED.search(b"\n".join(names)) is not None


def _is_bare(head: RequestHead) -> bool:
    return all(coding == b"identity" for value in head.find_all(b"content-encoding") for coding in tokens(value))


def accepts_packing(head: RequestHead) -> bool:
    """Whether the client would take a compressed answer."""
    for member in tokens(b",".join(head.find_all(b"accept-encoding"))):
        coding, _, weight = member.replace(b" ", b"").partition(b";")
        if coding not in (b"", b"identity") and not re.fullmatch(rb"q=0(\.0*)?", weight):
            return True
    return False


def edited_at_a_glance(body: bytes) -> bytes | None:
    """As `edited`, of a body that was read and asks for a stream; None where a glance does not suffice."""
    if body.count(b'"stream"') != 1 or b"stream_options" in body or b"\\u" in body:
        return None
    return _with_member(body)


def edited(body: bytes) -> bytes | None:
    """The body of a streaming request with the server's count asked for; None where that is not plainly safe."""
    try:
        fields = orjson.loads(body)
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.get("stream") is not True:
        return None
    if body.count(b'"stream"') != 1 and _times(body, "stream") != 1:
        return None  # told twice, or not as it is spelled: another parser may read it otherwise
    if "stream_options" not in fields:
        return _with_member(body)
    return _with_options(body, fields["stream_options"])


def _with_member(body: bytes) -> bytes:
    start = body.index(b"{") + 1
    return body[:start] + MEMBER + body[start:]


def _with_options(body: bytes, options: Json) -> bytes | None:
    """The body with the `stream_options` that it has turned to `include_usage`."""
    places = [place for key, *place in _members(body) if key == "stream_options"]
    if len(places) != 1:
        return None
    ((start, end),) = places
    value = body[start:end]
    if options is None:
        value = value.replace(b"null", OPTIONS)
    elif options == {"include_usage": False} and value.count(b":") == 1 and options["include_usage"] is False:
        value = value.replace(b"false", b"true")
    else:
        return None
    return body[:start] + value + body[end:]


def _times(body: bytes, key: str) -> int:
    return sum(name == key for name, *_ in _members(body))


_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]', re.DOTALL)


def _members(body: bytes) -> Iterator[tuple[str, int, int]]:
    """The members of the object that valid JSON is: each key with the start and the end of its value."""
    depth, key, start = 0, "", 0
    last = b""
    for token in _TOKEN.finditer(body):
        text = token[0]
        if depth == 1 and text == b":" and last.startswith(b'"'):
            key, start = orjson.loads(last), token.end()
        if depth == 1 and start and text in (b",", b"}"):
            yield key, start, token.start()
            start = 0
        depth += (text in (b"{", b"[")) - (text in (b"}", b"]"))
        last = text
