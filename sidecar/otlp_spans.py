"""A request as an OTLP span (opentelemetry.proto.trace.v1), with the attributes of DESIGN 4.3.

An attribute whose value is unknown is absent. Lengths, names and times only: no prompt, no completion, no path.
"""

from collections.abc import Iterator

from sidecar import otlp_wire as wire
from sidecar.watch import EndedRequest
from slo import signals

_SERVER = 2
_ERROR = 2
_FAILED = frozenset(("error", "rejected", "timeout"))
_ITEM = 2  # the field that repeats spans within a scope
MAX_MODEL = 200


def encode(ended: EndedRequest) -> bytes:
    """One span, as the field that a scope repeats."""
    record, context = ended.record, ended.context
    model = _model(record.request_model or record.response_model)
    fields = [
        wire.block(1, context.trace_id),
        wire.block(2, context.span_id),
        wire.text(5, f"{record.operation} {model}" if model else record.operation),
        wire.integer(6, _SERVER),
        wire.fixed64(7, ended.start_unix_ns),
        # The end hangs on the monotonic duration: a wall clock that is set back must not shorten a request.
        wire.fixed64(8, ended.start_unix_ns + record.ended_at_ns - record.t0_ns),
        *(wire.attribute(9, key, value) for key, value in _attributes(ended)),
    ]
    if context.parent_id is not None:
        fields.append(wire.block(4, context.parent_id))
    if record.outcome in _FAILED:
        fields.append(wire.block(15, wire.integer(3, _ERROR)))
    return wire.block(_ITEM, b"".join(fields))


def _model(name: str | None) -> str | None:
    return name[:MAX_MODEL] if name else None


def _attributes(ended: EndedRequest) -> Iterator[tuple[str, wire.Value]]:
    record = ended.record
    values: tuple[tuple[str, wire.Value | None], ...] = (
        (signals.OPERATION, record.operation),
        (signals.REQUEST_MODEL, _model(record.request_model)),
        (signals.RESPONSE_MODEL, _model(record.response_model)),
        (signals.INPUT_TOKENS, record.input_tokens),
        (signals.OUTPUT_TOKENS, record.output_tokens),
        (signals.FINISH_REASONS, record.finish_reasons or None),
        (signals.LATENCY_TTFT, record.ttft_s),
        (signals.LATENCY_TPOT, record.tpot_s),
        (signals.LATENCY_E2E, record.e2e_s),
        (signals.ERROR_TYPE, record.error_type),
        (signals.OUTCOME, record.outcome),
        (signals.STREAM, record.stream),
        (signals.TIME_TO_FIRST_ANSWER, record.time_to_first_answer_s),
        (signals.CLASS, ended.request_class),
        (signals.TOKEN_COUNT_SOURCE, record.token_count_source),
        (signals.LONGEST_GAP, record.longest_gap_s),
        (signals.DIALECT, record.dialect),
        (signals.KV_AT_ARRIVAL, ended.kv_at_arrival),
        (signals.KV_MAX, ended.kv_max),
        (signals.REQUEST_ID, ended.request_id),
    )
    return ((key, value) for key, value in values if value is not None)


def kept(ended: EndedRequest, *, ratio: float) -> bool:
    """Whether a span is exported: a violator always, of the rest the share `ratio`, decided by the trace id.

    The last seven bytes of a trace id are random (W3C Trace Context, level 2), so that every party that samples by
    them keeps the same traces.
    """
    if ended.violated or ratio >= 1:
        return True
    return int.from_bytes(ended.context.trace_id[-7:], "big") >= (1 - ratio) * (1 << 56)
