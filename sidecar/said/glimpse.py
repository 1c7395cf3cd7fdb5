"""The beginning and the end of a request's body that comes in pieces, at most so much as is ever looked at."""

from sidecar.said.dialects import LOOK_BYTES, TAIL_BYTES


class Glimpse:
    """What is kept of a body of `size` bytes: the whole of a short one in `head`; of a longer one `tail` as well."""

    __slots__ = ("head", "size", "tail")

    def __init__(self) -> None:
        self.head, self.tail, self.size = bytearray(), b"", 0

    def add(self, data: bytes) -> None:
        """The body goes on."""
        room = LOOK_BYTES - len(self.head)
        before = len(self.head) if self.size <= LOOK_BYTES else 0
        if room > 0:
            self.head += data[:room]
        self.size += len(data)
        if self.size > LOOK_BYTES:
            start = bytes(self.head[:before][-TAIL_BYTES:]) if before else self.tail
            self.tail = (start + data[-TAIL_BYTES:])[-TAIL_BYTES:]
