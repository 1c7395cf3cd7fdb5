"""The body of a response as a source of events: which kind it is by its head, unpacked, split.

`Body(...)` decides once, by status and headers, how a body is read; `feed` and `flush` then give its raw events. A body
of a kind that cannot be read is `blind`, and so becomes one whose packing turns out corrupt: its bytes still pass, they
are counted in `unread` and never guessed at.
"""

import functools
from collections.abc import Callable
from typing import Literal

from sidecar.http.encoding import Unpacker, UnpackError, unpacker
from sidecar.said.dialects import Ask
from sidecar.said.sse import EventReader, LineReader, RawEvent, Reader, WholeReader

Kind = Literal["events", "whole", "blind"]

_NDJSON_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
# Types that say nothing of what the bytes are: read as the dialect would have it, believed only if it can be.
_UNTOLD_TYPES = ("", "application/octet-stream", "text/plain")


class Body:
    """One response body. `told`: the head said what it is; without that, only what parses is believed."""

    __slots__ = ("_kind", "_reader", "feed", "told")

    def __init__(self, ask: Ask, status: int, *, content_type: str, content_encoding: str) -> None:
        media_type = _media_type(content_type)
        self.told = media_type not in _UNTOLD_TYPES
        self._kind: Kind
        self._reader: Reader
        self._kind, self._reader = _reader(ask, status, media_type)
        try:
            packing = unpacker(content_encoding)
        except UnpackError:
            self._kind, self._reader = "blind", BlindReader(skipped=1)
        else:
            if packing is not None:
                self._reader = PackedReader(packing, self._reader)
        # Never a method of this object: the two would hold each other, and whatever a packed body needs to be read.
        self.feed: Callable[[bytes], list[RawEvent]] = self._reader.feed

    @property
    def kind(self) -> Kind:
        reader = self._reader
        return "blind" if isinstance(reader, PackedReader) and reader.is_corrupt else self._kind

    @property
    def at_boundary(self) -> bool:
        """Whether the next byte begins an event, and is what the reader will see."""
        return self._reader.at_boundary

    @property
    def unread(self) -> int:
        """Events over the size limit, and one for a body that could not be read at all."""
        return self._reader.skipped

    def flush(self) -> list[RawEvent]:
        """What the body ended in without a terminator."""
        return self._reader.flush()


class PackedReader:
    """Reads what another reader can read, once unpacked; sees nothing any more when the packing turns out corrupt."""

    __slots__ = ("_reader", "_unpacker", "is_corrupt", "skipped")
    at_boundary = False  # the next byte is not what the reader will see

    def __init__(self, packing: Unpacker, reader: Reader) -> None:
        self._unpacker, self._reader = packing, reader
        self.skipped, self.is_corrupt = 0, False

    def feed(self, data: bytes) -> list[RawEvent]:
        events: list[RawEvent] = []
        if self.is_corrupt:
            return events
        try:
            for piece in self._unpacker.feed(data):
                events += self._reader.feed(piece)
        except UnpackError:
            self.is_corrupt = True
        self.skipped = self._reader.skipped + self.is_corrupt
        return events

    def flush(self) -> list[RawEvent]:
        if self.is_corrupt:
            return []
        events = self._reader.flush()
        self.skipped = self._reader.skipped
        return events


class BlindReader:
    """Sees nothing, and counts that there was something."""

    __slots__ = ("skipped",)
    at_boundary = False

    def __init__(self, skipped: int = 0) -> None:
        self.skipped = skipped

    def feed(self, data: bytes) -> list[RawEvent]:
        self.skipped = self.skipped or min(len(data), 1)
        return []

    def flush(self) -> list[RawEvent]:
        return []


@functools.lru_cache(maxsize=64)
def _media_type(content_type: str) -> str:
    """Without its parameters; a server has few, and sends one with every answer."""
    return content_type.partition(";")[0].strip().lower()


def _reader(ask: Ask, status: int, media_type: str) -> tuple[Kind, Reader]:
    if status >= 300 or media_type == "application/json" or media_type.endswith("+json"):
        return "whole", WholeReader()
    if media_type == "text/event-stream":
        return "events", EventReader()
    if media_type in _NDJSON_TYPES:
        return "events", LineReader()
    if media_type not in _UNTOLD_TYPES:
        return "blind", BlindReader()
    if not ask.stream:
        return "whole", WholeReader()
    return "events", LineReader() if ask.dialect.framing == "ndjson" else EventReader()
