"""W3C Trace Context (Recommendation, level 1): the incoming `traceparent`, and ours in its place.

Pure: the random bits are arguments. An invalid or repeated field starts a new trace, as the recommendation says.
"""

import re
from dataclasses import dataclass

_FORM = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
SAMPLED = 1


@dataclass(frozen=True, slots=True)
class SpanContext:
    """Who our span is: `parent_id` is None when the trace starts here."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    flags: int = SAMPLED

    @property
    def traceparent(self) -> bytes:
        """The field for the server behind us, so that its span becomes the child of ours."""
        return b"00-%s-%s-%02x" % (self.trace_id.hex().encode(), self.span_id.hex().encode(), self.flags)


def child_of(incoming: list[bytes], *, trace_bits: int, span_bits: int) -> SpanContext:
    """The context of a new span under `incoming`, every traceparent value of the request.

    `trace_bits` (128) is used only when a trace starts here, `span_bits` (64) always; both must not be 0.
    """
    span_id = span_bits.to_bytes(8, "big")
    match = _FORM.fullmatch(incoming[0].strip()) if len(incoming) == 1 else None
    if match is None or not _valid(match):
        return SpanContext(trace_bits.to_bytes(16, "big"), span_id, None)
    return SpanContext(
        trace_id=bytes.fromhex(match[2].decode()),
        span_id=span_id,
        parent_id=bytes.fromhex(match[3].decode()),
        flags=int(match[4], 16) & SAMPLED,
    )


def _valid(match: re.Match[bytes]) -> bool:
    """Whether ids and version are usable: version ff is none, 00 has no fifth part, ids are not all zero."""
    return (
        match[1] != b"ff"
        and not (match[1] == b"00" and match[5])
        and match[2].strip(b"0") != b""
        and match[3].strip(b"0") != b""
    )
