"""The reads of one answer that are alike: known at a glance, passed on as they came, looked at together.

Once a stream has shown its form (see `form`), nearly every read is one event of that form, and of a chunked body one
whole chunk. Such a read says nothing to the parser behind, which stands between two chunks before it and after it, and
nothing that could not be told later: its text and its time are noted, and up to `RUN` of them are told at once, or as
soon as a deadline, a page, another read or the end asks. Times are those of the reads: looking late changes no number.

Nothing is guessed: the size line, prefix and suffix are compared byte for byte, and what the texts are is found out
when they are told. A body with a length never comes here, since its end is known by counting.
"""

from collections.abc import Callable

from sidecar.form import Form
from sidecar.watch import Watch

RUN = 32
LONGEST_BYTES = 4 << 10  # a longer read is looked at by itself

_NONE = b"\n"  # begins no read of a form


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
_NO_LINES = (b"",) * (LONGEST_BYTES + 1)


class Alike:
    """The alike reads of one answer. `chunked`: each is a chunk. `expect` says of which form they are to be."""

    __slots__ = ("_end", "_form", "_lines", "_look", "_prefix", "_suffix", "_texts", "_times_ns", "_watch")

    def __init__(self, watch: Watch, look: Callable[..., object], *, chunked: bool) -> None:
        self._watch, self._look = watch, look
        self._lines, self._end = (_SIZE_LINES, b"\r\n") if chunked else (_NO_LINES, b"")
        self._form: Form | None = None
        self._prefix = self._suffix = b""
        self._texts: list[bytes] = []
        self._times_ns: list[int] = []

    def expect(self, form: Form | None) -> None:
        """The form of the reads to come, which begin between two events and two chunks; None: they are not alike."""
        if form is not self._form:
            self._form = form
            if form is not None:
                self._prefix, self._suffix = form.prefix, form.suffix + self._end

    def take(self, data: bytes, at_ns: int) -> bool:
        """Whether a read is alike; then it is noted."""
        if self._form is None or len(data) > LONGEST_BYTES:
            return False
        line = self._lines[len(data)]
        start = len(line)
        if not (data.startswith(line) and data.startswith(self._prefix, start) and data.endswith(self._suffix)):
            return False
        text = data[start + len(self._prefix) : -len(self._suffix)]
        if not text or b"\n" in text:  # nothing, or several events
            return False
        self._texts.append(text)
        self._times_ns.append(at_ns)
        if len(self._texts) >= RUN:
            self.tell()
        return True

    def tell(self) -> bytes | None:
        """Have all that was noted looked at; the payload of the latest, if there was any. Never raises."""
        form, texts, times_ns = self._form, self._texts, self._times_ns
        if not texts or form is None:
            return None
        self._texts, self._times_ns = [], []
        self._look(self._watch.texts, texts, times_ns)
        return form.read(texts[-1])
