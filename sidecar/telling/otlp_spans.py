"""A request as an OTLP span (opentelemetry.proto.trace.v1), with the attributes of DESIGN 4.3.

An attribute whose value is unknown is absent. Lengths, names and times only: no prompt, no completion, no path.

One span is written for each request, beside a live proxy. What many requests have in common (model, outcome, dialect
and their like) is therefore written once for each combination and kept; ids, times and numbers are all that is left.
"""

import functools
import struct
from collections.abc import Callable

from sidecar.said.record import IN_TIME, EndedRequest, Record
from sidecar.telling import otlp_wire as wire
from slo import signals

_SERVER = 2
_ERROR = 2
_FAILED = frozenset(("error", "rejected", "timeout"))
_ITEM = 2  # the field that repeats spans within a scope
_ATTRIBUTES = 9
MAX_TEXT = 200  # characters of a model's name
MAX_COMBINATIONS = 256  # of the attributes that requests share; of more, the one unused longest is written anew

# Trace id (field 1), span id (2), start (7) and end (8), each behind its tag and, of the ids, the length.
_IDS_AND_TIMES = struct.Struct("<2s16s2s8scQcQ")
_DOUBLE = struct.Struct("<d")

_SHARED = (
    signals.OPERATION,
    signals.REQUEST_MODEL,
    signals.RESPONSE_MODEL,
    signals.OUTCOME,
    signals.FINISH_REASONS,
    signals.ERROR_TYPE,
    signals.STREAM,
    signals.CLASS,
    signals.TOKEN_COUNT_SOURCE,
    signals.DIALECT,
    signals.VERDICT,
)
_INPUT_TOKENS = wire.integer_attribute(_ATTRIBUTES, signals.INPUT_TOKENS)
_OUTPUT_TOKENS = wire.integer_attribute(_ATTRIBUTES, signals.OUTPUT_TOKENS)


def _double(key: str) -> Callable[[float], bytes]:
    """What writes one attribute of seconds or shares."""
    before, pack = wire.before_double(_ATTRIBUTES, key), _DOUBLE.pack
    return lambda value: before + pack(value)


_TTFT, _TPOT, _E2E = _double(signals.LATENCY_TTFT), _double(signals.LATENCY_TPOT), _double(signals.LATENCY_E2E)
_FIRST_ANSWER, _LONGEST_GAP = _double(signals.TIME_TO_FIRST_ANSWER), _double(signals.LONGEST_GAP)
_KV_AT_ARRIVAL, _KV_MAX = _double(signals.KV_AT_ARRIVAL), _double(signals.KV_MAX)
_PREDICTED_TTFT = _double(signals.PREDICTED_TTFT)


def encode(ended: EndedRequest) -> bytes:
    """One span, as the field that a scope repeats."""
    record, context, start_ns = ended.record, ended.context, ended.start_unix_ns
    # The end hangs on the monotonic duration: a wall clock that is set back must not shorten a request.
    end_ns = start_ns + record.ended_at_ns - record.t0_ns
    ids_and_times = _IDS_AND_TIMES.pack(
        b"\x0a\x10", context.trace_id, b"\x12\x08", context.span_id, b"\x39", start_ns, b"\x41", end_ns
    )
    fields = [ids_and_times, _shared(_in_common(ended))]
    if context.parent_id is not None:
        fields.append(wire.block(4, context.parent_id))
    if record.input_tokens is not None:
        fields.append(_INPUT_TOKENS(record.input_tokens))
    if record.output_tokens is not None:
        fields.append(_OUTPUT_TOKENS(record.output_tokens))
    if record.e2e_s is not None:
        fields.append(_E2E(record.e2e_s))
    if record.token_events:
        _add_pace(fields, record)
    if ended.kv_at_arrival is not None:
        fields.append(_KV_AT_ARRIVAL(ended.kv_at_arrival))
    if ended.kv_max is not None:
        fields.append(_KV_MAX(ended.kv_max))
    if ended.predicted_ttft_s is not None:
        fields.append(_PREDICTED_TTFT(ended.predicted_ttft_s))
    if ended.request_id is not None:
        fields.append(wire.attribute(_ATTRIBUTES, signals.REQUEST_ID, ended.request_id))
    return wire.block(_ITEM, b"".join(fields))


def _in_common(ended: EndedRequest) -> tuple[wire.Value | None, ...]:
    """The values of `_SHARED`."""
    record = ended.record
    return (
        record.operation,
        record.request_model,
        record.response_model,
        record.outcome,
        record.finish_reasons or None,
        record.error_type,
        record.stream,
        ended.request_class,
        record.token_count_source,
        record.dialect,
        None if ended.verdict == IN_TIME else ended.verdict,
    )


def _add_pace(fields: list[bytes], record: Record) -> None:
    """What only an answer with token events has."""
    if record.ttft_s is not None:
        fields.append(_TTFT(record.ttft_s))
    if record.tpot_s is not None:
        fields.append(_TPOT(record.tpot_s))
    if record.time_to_first_answer_s is not None:
        fields.append(_FIRST_ANSWER(record.time_to_first_answer_s))
    if record.longest_gap_s is not None:
        fields.append(_LONGEST_GAP(record.longest_gap_s))


@functools.lru_cache(maxsize=MAX_COMBINATIONS)
def _shared(values: tuple[wire.Value | None, ...]) -> bytes:
    """The fields that follow from the values of `_SHARED` alone: name, kind, attributes and status."""
    texts = [value[:MAX_TEXT] if isinstance(value, str) else value for value in values]
    operation, request_model, response_model, outcome = texts[:4]
    model = request_model or response_model
    fields = [wire.text(5, f"{operation} {model}" if model else f"{operation}"), wire.integer(6, _SERVER)]
    for key, value in zip(_SHARED, texts, strict=True):
        if value is not None:
            fields.append(wire.attribute(_ATTRIBUTES, key, value))
    if outcome in _FAILED:
        fields.append(wire.block(15, wire.integer(3, _ERROR)))
    return b"".join(fields)


def kept(ended: EndedRequest, *, ratio: float) -> bool:
    """Whether a span is exported: a violator always, of the rest the share `ratio`, decided by the trace id.

    The last seven bytes of a trace id are random (W3C Trace Context, level 2), so that every party that samples by
    them keeps the same traces.
    """
    if ended.violated or ratio >= 1:
        return True
    return int.from_bytes(ended.context.trace_id[-7:], "big") >= (1 - ratio) * (1 << 56)
