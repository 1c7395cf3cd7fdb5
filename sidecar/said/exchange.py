"""One request's timeline, as a machine: fed bytes and times in order, it says what the user got and how long it took.

    state      what is true                     head       bytes      end        lost       left       timed out
    -------    -----------------------------    -------    -------    -------    -------    -------    ---------
    ASKED      the request is held, no head     READING    wrong      wrong      ENDED      ENDED      ENDED
    READING    the head came, the body comes    wrong      READING    ENDED      ENDED      ENDED      ENDED
    ENDED      judged, once and for all         ignored    ignored    ignored    ignored    ignored    ignored

What the table calls wrong is a call that only a fault of our own shell can make: it raises `OrderError` and changes
nothing. What comes after the end is ignored, since the client's leaving and the server's end race each other. No bytes
of either side raise.

Inside READING the body (see `body`) is a stream of events, one whole JSON body, or blind. An event of a stream is one
of: token-bearing (reasoning or answer; see `tokens`), known but without a token (role, usage, progress, finish), the
end mark, or unparsed (not JSON, a shape the dialect does not know, over the size limit).

The end is judged by the first of these rules that holds:

    the status is an error                503 rejected, 429 quota or rejected, other 4xx client_error, 5xx error
    an error stood among the events       error
    the answer had finished               ok, or no_output when not one token came, however the connection went then
    lost, or cut before the end mark      error
    left / timed out                      cancelled / timeout
    the body came whole                   ok, or no_output

Knows no clock, no socket and no telemetry: times are nanoseconds of one monotonic clock, as arguments.
"""

import enum
from typing import NamedTuple

from orjson import loads

from sidecar.said.body import Body
from sidecar.said.dialects import Ask
from sidecar.said.facts import ANSWER, MAX_CHOICES, STRANGE, Event, Json, error_type
from sidecar.said.record import Outcome, Record, outcome_of_status
from sidecar.said.sse import RawEvent
from sidecar.said.template import Template, learn
from sidecar.said.tokens import Tokens

END_MARK = b"[DONE]"
MAX_TEMPLATE_TRIES = 8  # tried in vain before a stream is held to have none


class OrderError(Exception):
    """A call that cannot come in this state: the shell's fault, never a peer's."""


class State(enum.Enum):
    """Where an exchange stands; the table above says what leads where."""

    ASKED = "asked"
    READING = "reading"
    ENDED = "ended"


class _End(NamedTuple):
    at_ns: int
    answer_at_ns: int
    outcome: Outcome
    error_type: str | None


_NO_TOKENS = Tokens(1)  # what there is of an answer that has not begun: never written to


class Exchange:
    """One admitted request, from the moment it is held to its end.

    Until then its live facts may be read: `status`, `streamed`, `token_events`, `ended`, and when things were first
    seen: `received_at_ns` (an event, or a byte of another body; a head or a comment is neither), `first_token_at_ns`,
    `last_token_at_ns`, `finished_at_ns` (the answer's own end).
    """

    __slots__ = (
        "_body",
        "_end",
        "_error",
        "_finish",
        "_known",
        "_last_read_at_ns",
        "_overload_429",
        "_read",
        "_response_model",
        "_state",
        "_template",
        "_tokens",
        "_tries_left",
        "_unparsed",
        "ask",
        "finished_at_ns",
        "received_at_ns",
        "status",
        "streamed",
        "t0_ns",
    )

    def __init__(self, ask: Ask, t0_ns: int, *, overload_429: bool = False) -> None:
        self.ask = ask
        self.t0_ns = t0_ns
        self.status: int | None = None
        self.streamed = False
        self.received_at_ns: int | None = None
        self.finished_at_ns: int | None = None
        self._overload_429 = overload_429 or ask.dialect.overload_429
        self._state = State.ASKED
        self._body: Body | None = None
        self._read = ask.dialect.event
        self._tokens = _NO_TOKENS
        self._last_read_at_ns: int | None = None
        self._known = False
        self._template: Template | None = None
        self._tries_left = MAX_TEMPLATE_TRIES
        self._unparsed = 0
        self._finish: dict[int, str] = {}
        self._error: str | None = None
        self._response_model: str | None = None
        self._end: _End | None = None

    @property
    def first_token_at_ns(self) -> int | None:
        """When the first token came."""
        return self._tokens.first_at_ns

    @property
    def last_token_at_ns(self) -> int | None:
        """When the newest token came."""
        return self._tokens.last_at_ns

    @property
    def token_events(self) -> int:
        """How many token events there were."""
        return self._tokens.events

    @property
    def ended(self) -> bool:
        """Whether the outcome stands."""
        return self._end is not None

    def response_started(self, status: int, content_type: str = "", *, content_encoding: str = "", at_ns: int) -> None:
        """The final head of the response (not a 1xx), at `at_ns`."""
        if self._state is State.ENDED:
            return
        if self._state is not State.ASKED:
            raise OrderError(f"a second head at {at_ns} ns: a response has one")
        self.status = status
        self._state = State.READING
        self._tokens = Tokens(self.ask.choices)
        self._body = Body(self.ask, status, content_type=content_type, content_encoding=content_encoding)
        self.streamed = self._body.kind == "events"
        if not self.streamed:
            self._read = self.ask.dialect.answer if status < 300 else _error_body

    def feed(self, data: bytes, at_ns: int) -> int:
        """Bytes of the body as one read brought them, transfer coding undone; returns how many token events they
        completed. Never raises on bytes."""
        body = self._body
        if body is None or not data:
            return self._out_of_turn("bytes of a body")
        self._last_read_at_ns = at_ns
        before = self._tokens.events
        for raw in body.feed(data):
            self._take(raw, at_ns)
        if self.received_at_ns is None and (self._has_event or body.unread or body.kind != "events"):
            self.received_at_ns = at_ns
        return self._tokens.events - before

    def feed_and_learn(self, data: bytes, at_ns: int) -> int:
        """As `feed`, and learn the read's template when it was a token and nothing else (see `template`)."""
        begins_event = self._body is not None and self._body.at_boundary
        tokens = self.feed(data, at_ns)
        if tokens == 1 and begins_event and self._body is not None and self._body.at_boundary:
            known = self._template is not None and self._template.frames(data)
            if not known and self._tries_left:
                self._tries_left -= 1
                self._template = learn(data, self._read) or self._template
        return tokens

    @property
    def template(self) -> Template | None:
        """The template of reads that may be told next by their texts alone, if one was learnt."""
        body = self._body
        return self._template if body is not None and body.at_boundary else None

    @property
    def may_learn(self) -> bool:
        """Whether `feed_and_learn` still learns: not on a stream whose reads have nothing in common."""
        return self._tries_left > 0

    def feed_texts(self, texts: list[bytes], at_ns: list[int]) -> int:
        """Reads of `template` in order, each at its own time: the same as to `feed` each, far cheaper."""
        template = self.template
        if template is None:
            return 0
        if not template.is_text(texts):
            return sum(self.feed(template.read(text), time_ns) for text, time_ns in zip(texts, at_ns, strict=True))
        self._tokens.run(at_ns, answer=template.fact is ANSWER)
        self._last_read_at_ns = at_ns[-1]
        self._tries_left = MAX_TEMPLATE_TRIES
        return len(texts)

    def _out_of_turn(self, what: str) -> int:
        """Nothing, after the end; before the head it is an error."""
        if self._state is State.ASKED:
            raise OrderError(f"{what} before the head: call response_started first")
        return 0

    @property
    def _has_event(self) -> bool:
        return bool(self._tokens.events or self._known or self._unparsed)

    def _take(self, raw: RawEvent, at_ns: int) -> None:
        """One whole event, token-bearing or not."""
        name, payload = raw
        if payload == END_MARK:
            self._known = True
            self._finish_at(at_ns)
            return
        try:
            chunk = loads(payload)
            fact = self._read(chunk)
            if self._response_model is None:
                self._response_model = self.ask.dialect.model(chunk)
        except STRANGE:
            self._unparsed += 1
            return
        if fact is ANSWER and self.streamed:  # what nearly every event is
            self._tokens.token(at_ns)
            return
        if name == b"error" and fact.error is None:
            fact = Event(error=error_type(chunk) or "error")
        self._take_facts(fact, at_ns)

    def _take_facts(self, fact: Event, at_ns: int) -> None:
        if not fact.known:
            self._unparsed += 1
            return
        self._known = True
        self._tokens.take(fact, at_ns, streamed=self.streamed)
        for choice, reason in fact.finish:
            if choice in self._finish or len(self._finish) < MAX_CHOICES:
                self._finish[choice] = reason
        self._error = self._error or fact.error
        if fact.done or (fact.finish and len(self._finish) >= self.ask.choices):
            self._finish_at(at_ns)

    def _finish_at(self, at_ns: int) -> None:
        if self.finished_at_ns is None:
            self.finished_at_ns = at_ns

    def response_ended(self, at_ns: int, *, framed: bool = True) -> None:
        """The body came whole. `framed=False` when only the connection's close says so: a stream that then stops short
        of an end mark which its dialect always sends was cut."""
        body = self._body
        if body is None:
            self._out_of_turn("the end of a response")
            return
        read_at_ns = at_ns if self._last_read_at_ns is None else self._last_read_at_ns
        for raw in body.flush():
            self._take(raw, read_at_ns)
        if self.received_at_ns is None and self._has_event:
            self.received_at_ns = read_at_ns
        cut = not framed and body.kind == "events" and body.told and self.ask.dialect.ends
        self._close(at_ns, "error" if cut else None, "upstream_closed")

    def upstream_lost(self, at_ns: int, error_type: str) -> None:
        """The server refused, reset or closed before the end of its response; `error_type` says how, in one word."""
        self._close(at_ns, "error", error_type)

    def client_left(self, at_ns: int) -> None:
        """The client closed before it had the whole response."""
        self._close(at_ns, "cancelled", None)

    def timed_out(self, at_ns: int, error_type: str = "timeout") -> None:
        """A limit of our own cut the request; `error_type` says which, in one word."""
        self._close(at_ns, "timeout", error_type)

    def _close(self, at_ns: int, broken: Outcome | None, error: str | None) -> None:
        """Judge the end; `broken` is the outcome if the answer had not finished, None when the body came whole."""
        if self._end is not None:
            return
        answer_at_ns = at_ns if broken is None or self.finished_at_ns is None else self.finished_at_ns
        overload = self._overload_429 or self._error == "overloaded"
        outcome = outcome_of_status(self.status, overload=overload)
        if outcome is not None:
            error, self._unparsed = self._error or str(self.status), 0  # an error's page need not be JSON
        else:
            self._unparsed += self._unread
            if self._error is not None:
                outcome, error = "error", self._error
            elif broken is not None and self.finished_at_ns is None:
                outcome = broken
            else:
                outcome, error = self._outcome_of_answer(), None
        self._end = _End(at_ns, answer_at_ns, outcome, error)
        self._state, self._body = State.ENDED, None

    @property
    def _unread(self) -> int:
        """What the body could not give as events; one for bytes of no told type that held not one."""
        body = self._body
        if body is None:
            return 0
        untold = not body.told and self.received_at_ns is None and self._last_read_at_ns is not None
        return body.unread + untold

    def _outcome_of_answer(self) -> Outcome:
        """ok, unless the answer was read and held not one token: what could not be read is not called empty."""
        if self._tokens.answered or (self._unparsed and not self._known):
            return "ok"
        return "no_output"

    def record(self) -> Record:
        """What the request was; only after its end."""
        end = self._end
        if end is None:
            raise OrderError("the record of an exchange that has not ended")
        ask, tokens, finish = self.ask, self._tokens, self._finish
        whole = end.outcome in ("ok", "no_output")
        output_tokens = tokens.output_tokens
        if output_tokens is None and end.outcome == "no_output":
            output_tokens = 0
        # In the order of the fields: with their names written out it takes twice as long.
        return Record(
            self.t0_ns,
            end.at_ns,
            ask.dialect.name,
            ask.operation,
            ask.model,
            self._response_model,
            ask.stream,
            self.streamed,
            self.status,
            end.outcome,
            end.error_type,
            (end.at_ns - self.t0_ns) / 1e9,
            self._since_t0(tokens.first_at_ns),
            tokens.per_token_s if whole or end.outcome == "cancelled" else None,
            self._since_t0(end.answer_at_ns) if whole else None,
            self._since_t0(tokens.first_answer_at_ns),
            tokens.longest_gap_ns / 1e9 if tokens.events > 1 else None,
            tokens.input_tokens,
            output_tokens,
            tokens.streamed_tokens,
            None if output_tokens is None else tokens.source,
            tuple(finish.values()) if len(finish) < 2 else tuple(reason for _, reason in sorted(finish.items())),
            tokens.events,
            self._unparsed,
        )

    def _since_t0(self, at_ns: int | None) -> float | None:
        return None if at_ns is None else (at_ns - self.t0_ns) / 1e9


def _error_body(body: Json) -> Event:
    return Event(error=error_type(body))
