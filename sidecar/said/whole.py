"""The straight path of an answer that comes whole: one JSON body, in one read that also ended it.

Nearly every answer that is not streamed comes like that, and then there is nothing to remember between two reads: what
was asked, the bytes and two times make the record, the very one that `exchange` would give (the tests hold the two
against each other). Whatever is unusual goes the long way through that machine: a packed body, another type, an error
among good statuses, frames that repeat the answer, several choices, a body that cannot be read.
"""

from typing import Literal

from orjson import loads

from sidecar.http.http_head import ResponseHead
from sidecar.said.dialects import Ask
from sidecar.said.facts import STRANGE
from sidecar.said.record import Record
from sidecar.said.sse import MAX_BODY_BYTES

_JSON = b"application/json"


def is_plain(head: ResponseHead) -> bool:
    """Whether the body behind `head` is JSON as it is."""
    if b"content-encoding" in head.shape.places:
        return False
    kind = head.find(b"content-type")
    return kind is not None and (kind == _JSON or kind.partition(b";")[0].strip().lower() == _JSON)


def record_of(ask: Ask, t0_ns: int, *, status: int, body: bytes, at_ns: int) -> Record | None:
    """The record of a request held at `t0_ns` whose plain JSON answer of a 2xx status came whole at `at_ns`; None: it
    goes the long way."""
    if len(body) > MAX_BODY_BYTES:
        return None
    try:
        answer = loads(body)
        fact = ask.dialect.answer(answer)
        response_model = ask.dialect.model(answer)
    except STRANGE:
        return None
    finish, usage = fact.finish, fact.usage
    if fact.error is not None or fact.progress is not None or len(finish) > 1 or not fact.known:
        return None
    generated = fact.answer or fact.reasoning
    input_tokens = output_tokens = None
    if usage is not None:
        input_tokens, output_tokens = usage.input_tokens, usage.output_tokens
    source: Literal["usage", "chunks"] | None = None if output_tokens is None else "usage"
    if output_tokens is None and not generated:
        output_tokens, source = 0, "chunks"
    seconds = (at_ns - t0_ns) / 1e9
    # In the order of the fields: with their names written out it takes twice as long.
    return Record(
        t0_ns,
        at_ns,
        ask.dialect.name,
        ask.operation,
        ask.model,
        response_model,
        ask.stream,
        False,  # streamed
        status,
        "ok" if generated else "no_output",
        None,  # error_type
        seconds,
        None,  # ttft_s
        None,  # tpot_s
        seconds,  # e2e_s
        None,  # time_to_first_answer_s
        None,  # longest_gap_s
        input_tokens,
        output_tokens,
        None,  # streamed_tokens
        source,
        (finish[0][1],) if finish else (),
        0,  # token_events
        0,  # unparsed_events
    )
