"""What one ended request was, as one frozen value, and the names of its possible outcomes (DESIGN 5).

`Record` is what the exchange saw; `EndedRequest` hangs it into its trace, for whoever exports it.
"""

from typing import Literal, NamedTuple

from sidecar.http.trace_context import SpanContext

CONNECT_TIMEOUT = "connect_timeout"
"""The error type of the one limit of ours at which a request ends that its client still waits for."""

IN_TIME = "in_time"
"""What the queue guard says of nearly every request, and of those that it has nothing to say of."""

Outcome = Literal["ok", "no_output", "cancelled", "error", "rejected", "quota", "timeout", "client_error"]


class Record(NamedTuple):
    """Durations in seconds from the moment the request was held (`t0_ns`); None where there is no value.

    (A named tuple: made for each request, it costs a fifth of a frozen dataclass of so many fields.)

    `stream` is what was asked, `streamed` what came. `e2e_s` exists when the answer ended by itself (ok, no_output),
    `tpot_s` also when the client left; `duration_s` always. `streamed_tokens` are the output tokens that the stream
    showed: `tpot_s` is the time from first to last token over one less. `token_events` counts token-bearing events,
    `unparsed_events` what could not be read.
    """

    t0_ns: int
    ended_at_ns: int
    dialect: str
    operation: str
    request_model: str | None
    response_model: str | None
    stream: bool
    streamed: bool
    status: int | None
    outcome: Outcome
    error_type: str | None
    duration_s: float
    ttft_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    time_to_first_answer_s: float | None
    longest_gap_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    streamed_tokens: int | None
    token_count_source: Literal["usage", "chunks"] | None
    finish_reasons: tuple[str, ...]
    token_events: int
    unparsed_events: int


class EndedRequest(NamedTuple):
    """All that a span says of a request; `start_unix_ns` is wall time, the rest of the times hang on it. `verdict`: the
    queue guard's.

    (A named tuple: made for each request, it costs a third of a frozen dataclass.)
    """

    record: Record
    context: SpanContext
    start_unix_ns: int
    request_class: str | None
    request_id: str | None
    kv_at_arrival: float | None
    kv_max: float | None
    violated: bool
    verdict: str = IN_TIME
    predicted_ttft_s: float | None = None


def outcome_of_status(status: int | None, *, overload: bool) -> Outcome | None:
    """The outcome that an HTTP status alone decides, None for one that leaves it to the body.

    `overload`: this server says by 429 that it is full (TGI does), not that a client's quota is spent.
    """
    if status is None or status < 400:
        return None
    if status == 429:
        return "rejected" if overload else "quota"
    if status == 503:
        return "rejected"
    return "error" if status >= 500 else "client_error"
