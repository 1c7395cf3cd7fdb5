"""W3C Trace Context (Recommendation, level 1): the incoming `traceparent`, and ours in its place.

Pure: the random bits are arguments. An invalid or repeated field starts a new trace, as the recommendation says.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

# No version ff, no id of zeros alone.
_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
SAMPLED = 1


class SpanContext(NamedTuple):
    """Who our span is: `parent_id` is None when the trace starts here. (A named tuple: every request makes one.)"""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    flags: int = SAMPLED

    @property
    def traceparent(self) -> bytes:
        """The field for the server behind us, so that its span becomes the child of ours."""
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{'01' if self.flags & SAMPLED else '00'}".encode()


def root(trace_bits: int, span_bits: int) -> SpanContext:
    """The context of a span where a trace starts; neither may be 0."""
    return SpanContext(trace_bits.to_bytes(16, "big"), span_bits.to_bytes(8, "big"), None)


def child_of(incoming: Sequence[bytes], *, trace_bits: int, span_bits: int) -> SpanContext:
    """The context of a new span under `incoming`, every traceparent value of the request.

    `trace_bits` (128) is used only when a trace starts here, `span_bits` (64) always; both must not be 0.
    """
    match = _FORM.fullmatch(incoming[0].strip().decode("latin-1")) if len(incoming) == 1 else None
    if match is None or (match[1] == "00" and match[5]):  # version 00 has no fifth part
        return root(trace_bits, span_bits)
    span_id = span_bits.to_bytes(8, "big")
    return SpanContext(bytes.fromhex(match[2]), span_id, bytes.fromhex(match[3]), int(match[4], 16) & SAMPLED)
