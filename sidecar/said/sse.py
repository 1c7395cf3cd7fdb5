"""Bytes of a body to whole events: server-sent events, newline-delimited JSON, one whole body.

The three readers share one form: `feed(data)` gives the events that `data` completed, as `(name, data)` pairs of bytes;
`flush()`, at the end of the body, gives what stood there without its terminator; `skipped` counts what was over the
limit. Any split of the same bytes gives the same events. They work on bytes throughout: a character split over two
reads, U+2028 or U+0085 are nothing special (WHATWG HTML, section 9.2: lines end with LF, CR or CRLF alone).

Memory is bounded: an unfinished line or event is held up to its limit, then dropped to its end and counted.
"""

from typing import Protocol

MAX_EVENT_BYTES = 1 << 20
MAX_BODY_BYTES = 1 << 20

BOM = b"\xef\xbb\xbf"
LF, CR = b"\n\r"
# A line this much longer than the limit cannot hold a value within it: BOM, "data:" and a blank come before the value.
_LINE_SLACK_BYTES = len(BOM + b"data: ")

RawEvent = tuple[bytes, bytes]
"""An event's name (empty when it has none) and its data."""


class Reader(Protocol):
    """What turns a body into events; `skipped` counts events over the size limit. `at_boundary`: bytes have come, and
    none of an unfinished event is held."""

    skipped: int

    @property
    def at_boundary(self) -> bool: ...

    def feed(self, data: bytes) -> list[RawEvent]: ...

    def flush(self) -> list[RawEvent]: ...


class EventReader:
    """Server-sent events. Comments, `id` and `retry` are passed over; several data lines are joined by LF."""

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_data_bytes",
        "_line",
        "_name",
        "_oversized",
        "at_boundary",
        "skipped",
    )

    def __init__(self) -> None:
        self.skipped = 0
        self._line = UnfinishedLine(MAX_EVENT_BYTES + _LINE_SLACK_BYTES)
        self._after_cr = False  # the last read ended with CR: an LF that comes first in the next belongs to it
        self._at_start = True  # no line seen: a byte order mark may come
        self.at_boundary = False  # past the start, and nothing of an unfinished event is held
        self._clear()

    def _clear(self) -> None:
        self._name = b""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._oversized = False

    def feed(self, data: bytes) -> list[RawEvent]:
        """The events completed by `data`."""
        if not self.at_boundary or not data.endswith(b"\n\n") or CR in data:
            return self._lines(data)
        size = len(data)
        if data.startswith(b"data: ") and data.find(b"\n", 6) == size - 2 and size <= MAX_EVENT_BYTES:
            return [(b"", data[6:-2])]  # nearly every read: one event of one line
        return self._blocks(data)

    def flush(self) -> list[RawEvent]:
        """The event that the body ended in: servers that leave out the last blank line are understood."""
        events: list[RawEvent] = []
        if self._line.begun:
            self._take_line(self._line.finish(b""), events)
        self._dispatch(events)
        return events

    def _blocks(self, data: bytes) -> list[RawEvent]:
        """Whole events with LF line ends only, one or several."""
        events: list[RawEvent] = []
        for block in data[:-2].split(b"\n\n"):
            first, _, second = block.partition(b"\n")
            if len(block) > MAX_EVENT_BYTES or LF in second:
                self._take_block(block, events)
            elif not second and first.startswith(b"data: "):
                events.append((b"", first[6:]))
            elif first.startswith(b"event: ") and second.startswith(b"data: "):
                events.append((first[7:], second[6:]))
            else:
                self._take_block(block, events)
        return events

    def _take_block(self, block: bytes, events: list[RawEvent]) -> None:
        for line in block.split(b"\n"):
            self._take_line(line, events)
        self._dispatch(events)

    def _lines(self, data: bytes) -> list[RawEvent]:
        events: list[RawEvent] = []
        if not data:
            return events
        if self._after_cr and data[0] == LF:
            data = data[1:]
        lines = data.splitlines(keepends=True)
        self._after_cr = data.endswith(b"\r")
        rest = lines.pop() if lines and lines[-1][-1] not in (LF, CR) else b""
        for line in lines:
            bare = line.rstrip(b"\r\n")
            self._take_line(self._line.finish(bare) if self._line.begun else bare, events)
        if rest:
            self._line.add(rest)
        holds_some = self._line.begun or self._after_cr or self._data or self._name or self._oversized
        self.at_boundary = not (holds_some or self._at_start)
        return events

    def _take_line(self, line: bytes, events: list[RawEvent]) -> None:
        if self._at_start:
            line = line.removeprefix(BOM)
            self._at_start = False
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data_bytes += len(value) + 1
            if self._data_bytes > MAX_EVENT_BYTES:
                self._oversized = True
                self._data.clear()
            else:
                self._data.append(value)
        elif field == b"event":
            self._name = value.removeprefix(b" ")

    def _dispatch(self, events: list[RawEvent]) -> None:
        if self._oversized:
            self.skipped += 1
        elif self._data:
            events.append((self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
        elif not self._name:
            return
        self._clear()


class LineReader:
    """Newline-delimited JSON: each non-empty line is an event without a name."""

    __slots__ = ("_line", "skipped")

    def __init__(self) -> None:
        self.skipped = 0
        self._line = UnfinishedLine(MAX_EVENT_BYTES)

    @property
    def at_boundary(self) -> bool:
        return not self._line.begun

    def feed(self, data: bytes) -> list[RawEvent]:
        """The lines completed by `data`."""
        first, *others = data.split(b"\n")
        if not others:
            self._line.add(first)
            return []
        lines = [self._line.finish(first) if self._line.begun else first, *others[:-1]]
        self._line.add(others[-1])
        return self._events(lines)

    def flush(self) -> list[RawEvent]:
        """The last line, when it has no line end."""
        return self._events([self._line.finish(b"")]) if self._line.begun else []

    def _events(self, lines: list[bytes]) -> list[RawEvent]:
        events: list[RawEvent] = []
        for line in lines:
            if len(line) > MAX_EVENT_BYTES:
                self.skipped += 1
            elif bare := line.strip():
                events.append((b"", bare))
        return events


class WholeReader:
    """One JSON body: a single event, given at the end of the body. Over the limit nothing of it is kept."""

    __slots__ = ("_body", "_oversized", "skipped")
    at_boundary = False

    def __init__(self) -> None:
        self.skipped = 0
        self._body = bytearray()
        self._oversized = False

    def feed(self, data: bytes) -> list[RawEvent]:
        """Nothing yet."""
        if self._oversized or len(self._body) + len(data) > MAX_BODY_BYTES:
            self._oversized = True
            self._body.clear()
        else:
            self._body += data
        return []

    def flush(self) -> list[RawEvent]:
        """The body, unless it is empty or over the limit."""
        if self._oversized:
            self.skipped += 1
            return []
        body = bytes(self._body).strip()
        self._body.clear()
        return [(b"", body)] if body else []


class UnfinishedLine:
    """The part of a line seen so far: a line fed byte by byte costs no more than its length.

    Past the limit the rest is dropped: `finish` then gives more than `limit` bytes of the line's beginning.
    """

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()

    @property
    def begun(self) -> bool:
        return bool(self._held)

    def add(self, piece: bytes) -> None:
        if len(self._held) <= self._limit:
            self._held += piece

    def finish(self, piece: bytes) -> bytes:
        """The line with its last piece; the next line may begin."""
        self.add(piece)
        line = bytes(self._held)
        self._held = bytearray()
        return line
