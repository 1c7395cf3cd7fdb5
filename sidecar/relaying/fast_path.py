"""The fast path of one answer: reads that are alike are known at a glance, passed on as they came, looked at together.

Once a stream has shown its template (see `template`), nearly every read is one event made from it, and of a chunked
body one whole chunk. Such a read says nothing to the parser behind, which stands between two chunks before it and after
it, and nothing that could not be told later: its text and its time are noted, and up to `RUN` of them go to the backlog
at once, or as soon as a deadline, a page, another read or the end asks. Times are those of the reads: looking late
changes no number.

Nothing is guessed: the size line, prefix and suffix are compared byte for byte, and what the texts are is found out
when they are told. A body with a length never comes here, since its end is known by counting.

This is what every token runs through, and mostly after a pause in which the processor has forgotten it: each call and
each object that it does without counts. So the connection asks here before it tells the relay.
"""

from sidecar.judging.backlog import Backlog
from sidecar.judging.watch import Watch
from sidecar.relaying.client import Client
from sidecar.said.template import Template

RUN = 32
FEW_READS = 4  # of one stream that wait in the backlog: it is fast, and its likes are worth to be known
LONGEST_BYTES = 4 << 10  # a longer read is looked at by itself

_NONE = b"\n"  # begins no read of any template
_LINE_FEED = ord("\n")  # `in` finds a number at once; of bytes it first asks whether they are one, and fails


def _size_lines() -> tuple[bytes, ...]:
    """The size line of the chunk that fills a read, by the read's length (RFC 9112, 7.1)."""
    lines = [_NONE] * (LONGEST_BYTES + 1)
    for payload in range(1, LONGEST_BYTES):
        line = b"%x\r\n" % payload
        size = len(line) + payload + len(b"\r\n")
        if size <= LONGEST_BYTES:
            lines[size] = line
    return tuple(lines)


_SIZE_LINES = _size_lines()
_SIZES = {b"%x" % size: size for size in range(1, LONGEST_BYTES)}
_LONGEST_LINE_BYTES = len(b"fff\r\n")
_NO_LINES = (b"",) * (LONGEST_BYTES + 1)


class FastPath:
    """Passes on the reads of one answer that are alike. `chunked`: each is a chunk; `expect`: of which template."""

    __slots__ = (
        "_backlog", "_client", "_end", "_ends_bytes", "_lines", "_prefix", "_suffix", "_template", "_texts",
        "_times_ns", "_unseen", "_watch",
    )  # fmt: skip

    def __init__(self, client: Client, watch: Watch, backlog: Backlog, *, chunked: bool) -> None:
        self._client, self._watch, self._backlog = client, watch, backlog
        self._lines, self._end = (_SIZE_LINES, b"\r\n") if chunked else (_NO_LINES, b"")
        self._template: Template | None = None
        self._prefix = self._suffix = b""
        self._ends_bytes = 0  # of both together
        self._unseen = 0  # reads that wait in the backlog
        self._texts: list[bytes] = []
        self._times_ns: list[int] = []

    def expect(self, template: Template | None) -> None:
        """The template of the reads to come, which begin between two events and two chunks; None: there is none."""
        if template is not self._template:
            self._template = template
            if template is not None:
                self._prefix, self._suffix = template.prefix, template.suffix + self._end
                self._ends_bytes = len(self._prefix) + len(self._suffix)

    def note(self, payload: bytes, at_ns: int, *, between: bool) -> None:
        """Have a read looked at that was not taken; until it is, its likes are not known. `between`: the next one
        begins a chunk. There may be no payload: the next read may stand within a chunk all the same."""
        self.expect(None)
        self._unseen += 1
        self._backlog.note_bytes(self._read, payload, at_ns, between)
        if self._unseen >= FEW_READS:
            self._backlog.settle()

    def _read(self, payload: bytes, at_ns: int, between: bool) -> None:
        """Tell of a read, and, when it was the latest, know its likes from now on."""
        self._unseen -= 1
        self._watch.read(payload, at_ns)
        if between and not self._unseen:
            self.expect(self._watch.template)

    def take(self, data: bytes, at_ns: int) -> bool:
        """Whether a read is alike; then the client has it, and it is noted."""
        if self._template is None:
            return False
        size = len(data)
        if size > LONGEST_BYTES:
            return self._take_several(data, at_ns)
        line = self._lines[size]
        text = data.removeprefix(line).removeprefix(self._prefix).removesuffix(self._suffix)
        if len(line) + self._ends_bytes + len(text) != size:  # one of them was not there
            return self._take_several(data, at_ns)
        if not text or _LINE_FEED in text:  # nothing, or several events
            return False
        self._client.out.write(data)
        self._texts.append(text)
        self._times_ns.append(at_ns)
        if len(self._texts) >= RUN:
            self.tell()
        return True

    def _take_several(self, data: bytes, at_ns: int) -> bool:
        """Whether a read is several such chunks, as they come together when we are slower than the server."""
        if not self._end or not data:
            return False
        prefix, suffix, texts, start = self._prefix, self._suffix, list[bytes](), 0
        while start < len(data):
            line_end = data.find(b"\r\n", start, start + _LONGEST_LINE_BYTES)
            size = _SIZES.get(data[start:line_end]) if line_end >= 0 else None
            if size is None:
                return False
            payload = line_end + len(b"\r\n")
            start = payload + size + len(b"\r\n")
            text = data[payload + len(prefix) : start - len(suffix)]
            framed = data.startswith(prefix, payload) and data.startswith(suffix, start - len(suffix))
            if not framed or not text or _LINE_FEED in text:
                return False
            texts.append(text)
        self._client.out.write(data)
        self._texts += texts
        self._times_ns += [at_ns] * len(texts)
        if len(self._texts) >= RUN:
            self.tell()
        return True

    def tell(self) -> bytes | None:
        """Have all that was noted looked at; the payload of the latest, if there was any. Never raises."""
        template, texts, times_ns = self._template, self._texts, self._times_ns
        if not texts or template is None:
            return None
        self._texts, self._times_ns = [], []
        self._backlog.note_late(self._watch.texts, texts, times_ns)
        return template.read(texts[-1])
