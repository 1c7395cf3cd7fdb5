"""Exemplars: beside a bucket of a latency, one request that fell into it, by its span (OpenMetrics 1.0, "Exemplars").

An exemplar is a promise that somebody can look the trace up. So it names our own span of a request where that is
exported; where no spans are, the caller's, if the caller's traceparent says that it is kept; else there is none.
"""

from typing import NamedTuple, TypeAlias

from sidecar.http.trace_context import SAMPLED, SpanContext


class Trace(NamedTuple):
    """A span that can be looked up, and when the request was over."""

    trace_id: bytes
    span_id: bytes
    at_unix_ns: int


Exemplar: TypeAlias = tuple[float, Trace]
"""A latency in seconds, and whose it was."""


def own_trace(context: SpanContext, at_unix_ns: int) -> Trace:
    """The trace of a request whose span is exported."""
    return Trace(context.trace_id, context.span_id, at_unix_ns)


def callers_trace(context: SpanContext, at_unix_ns: int) -> Trace | None:
    """The trace of a request whose span nobody gets, if its caller's is kept."""
    if context.parent_id is None or not context.flags & SAMPLED:
        return None
    return Trace(context.trace_id, context.parent_id, at_unix_ns)
