"""Whether to ask a server for its token counts: what its streams have shown so far decides.

`on` asks always, `off` never. `auto` asks an engine whose map says what asking does to its streams, and only once a
stream of that dialect has gone through untouched, has ended well and brought no count: a server that counts by itself
(vLLM's `--enable-force-include-usage`, llama.cpp's `timings`) needs no asking, and its clients would miss a count that
they have today.

    stage       what is known                              leads to
    --------    ---------------------------------------    -----------------------------------------------------------
    LEARNING    nothing: requests go untouched             ASKING by a good stream without a count; SETTLED by one with
    ASKING      streams come without a count               LEARNING by a refusal; SETTLED by the third, or a bad answer
    PROVEN      an asked stream was answered, and hidden   SETTLED by a bad answer; refusals are the client's own
    SETTLED     not to be asked                            LEARNING once the server was gone

A refusal is 400 or 422. A bad answer is a usage chunk that could not be hidden, or a compressed stream. Either mode
leaves a client that would take a compressed answer alone until such a client has been sent a plain one, since nothing
can be taken out of a compressed stream; and an engine that moves things is not asked for several answers at once.

Values in, values out: no socket, no clock. `UsagePolicy` is of one server, `Asking` of one request.
"""

import enum
import logging
from dataclasses import dataclass, field
from typing import Literal

from sidecar.engine.engines import ENGINES, UsageChunk
from sidecar.http.http_head import RequestHead, ResponseHead
from sidecar.limits import USAGE_REFUSALS
from sidecar.said.dialects import CHAT, COMPLETIONS, Ask, Dialect
from sidecar.said.record import Record
from sidecar.usage.usage_ask import accepts_packing, can_edit, edited, edited_at_a_glance
from sidecar.usage.usage_hide import UsageFilter

log = logging.getLogger(__name__)

Mode = Literal["auto", "on", "off"]
MODES: tuple[Mode, ...] = ("auto", "on", "off")
Result = Literal["hidden", "shown", "absent", "refused", "packed"]

DIALECTS = frozenset((CHAT.name, COMPLETIONS.name))
REFUSALS = (400, 422)
# Of an engine that is not known, as much is expected as any does.
UNKNOWN_ENGINE = UsageChunk(moves_fingerprint=True)


class Stage(enum.Enum):
    """What is known of the streams of one dialect; the table above says what leads where."""

    LEARNING = "learning"
    ASKING = "asking"
    PROVEN = "proven"
    SETTLED = "settled"


@dataclass(slots=True)
class _Known:
    stage: Stage = Stage.LEARNING
    refusals: int = 0


@dataclass(slots=True)
class _Server:
    """What one life of the server has shown."""

    dialects: dict[str, _Known] = field(default_factory=dict)
    sends_plain: bool = False

    def of(self, dialect: str) -> _Known:
        known = self.dialects.get(dialect)
        if known is None:
            known = self.dialects[dialect] = _Known()
        return known


class UsagePolicy:
    """Decides for each request, and learns from its end. `chunk`: what asking does to the engine's streams; None: the
    mode does not ask this engine."""

    def __init__(self, mode: Mode = "off", engine: str | None = None) -> None:
        self._mode: Mode = mode
        self._engine, self.chunk = engine, self._chunk_of(engine)
        self._server = _Server()

    def _chunk_of(self, engine: str | None) -> UsageChunk | None:
        known = ENGINES[engine].usage_chunk if engine in ENGINES else None
        return (known or UNKNOWN_ENGINE) if self._mode == "on" else known

    def engine_is(self, name: str) -> None:
        """The engine was recognised; another one than before is another server."""
        if name != self._engine:
            self._engine, self.chunk = name, self._chunk_of(name)
            self.server_gone()

    def server_gone(self) -> None:
        """The server cannot be reached: when it is back it may have other options."""
        self._server = _Server()

    def candidate(self, head: RequestHead, dialect: Dialect) -> "Asking | None":
        """The request to hold until its body is whole; None: it is none of ours and passes as it comes."""
        if self._mode == "off" or self.chunk is None or dialect.name not in DIALECTS:
            return None
        if self._mode == "auto" and self._server.of(dialect.name).stage is Stage.SETTLED:
            return None
        return Asking(self, dialect.name, head) if can_edit(head) else None

    def asks(self, asking: "Asking", ask: Ask) -> bool:
        """Whether to ask with a request that could be edited."""
        if self.chunk is None or (self.chunk.moves_fingerprint and ask.choices > 1):
            return False
        if asking.packing and not self._server.sends_plain:
            return False
        return self._mode == "on" or self._server.of(asking.dialect).stage in (Stage.ASKING, Stage.PROVEN)

    def learns_from(self, asking: "Asking") -> bool:
        """Whether a stream may teach something, were it not asked."""
        learning = asking.could and self._server.of(asking.dialect).stage is Stage.LEARNING
        return learning or (asking.packing and not self._server.sends_plain)

    def ended(self, asking: "Asking", record: Record) -> Result | None:
        """Learn from a request that is over; what came of it, if it was asked."""
        if not asking.streams:
            return None
        known = self._server.of(asking.dialect)
        streamed = record.streamed and record.outcome == "ok"
        if streamed and asking.packing and not asking.packed:
            self._server.sends_plain = True
        counted = record.token_count_source == "usage"  # noqa: S105  tokens of text
        if not asking.asked:
            if asking.could and streamed and known.stage is Stage.LEARNING:
                known.stage = Stage.SETTLED if counted else Stage.ASKING
            return None
        result = _result(asking, record, counted=counted)
        self._judge(known, result)
        return result

    def _judge(self, known: _Known, result: Result) -> None:
        if result == "hidden" and known.stage is Stage.ASKING:
            known.stage = Stage.PROVEN
        elif result == "refused" and known.stage is Stage.ASKING:
            known.refusals += 1
            known.stage = Stage.LEARNING if known.refusals < USAGE_REFUSALS else Stage.SETTLED
        elif result in ("shown", "packed") and self._mode == "auto":
            known.stage = Stage.SETTLED
        else:
            return
        if known.stage is Stage.SETTLED:
            log.warning("token counts are no longer asked for: the last answer was %s", result)


class Asking:
    """One request that may also be asked for its usage.

    `streams`: it asks for a stream, as only such a one can be asked; `packing`: its client takes a compressed one;
    `could`: its body allows it; `asked`: it was; `packed`: its answer came compressed.
    """

    __slots__ = ("_filter", "_head", "_policy", "asked", "could", "dialect", "packed", "packing", "streams")

    def __init__(self, policy: UsagePolicy, dialect: str, head: RequestHead) -> None:
        self._policy, self.dialect, self._head = policy, dialect, head
        self.streams = self.packing = self.could = self.asked = self.packed = False
        self._filter: UsageFilter | None = None

    @property
    def teaches(self) -> bool:
        """Whether the end of this stream may change whether others are asked: it is then looked at soon."""
        return not self.hidden if self.asked else self._policy.learns_from(self)

    @property
    def hidden(self) -> bool:
        """Whether a usage chunk was taken out of the answer."""
        return self._filter is not None and self._filter.hidden > 0

    def edit(self, ask: Ask, body: bytes) -> bytes | None:
        """The body to send instead of `body`, if it is to be asked."""
        if not ask.stream:
            return None
        self.streams, self.packing = True, accepts_packing(self._head)
        text = None if ask.wants_usage else edited_at_a_glance(body) or edited(body)
        self.could = text is not None
        if text is None or not self._policy.asks(self, ask):
            return None
        self.asked = True
        return text

    def answered(self, head: ResponseHead) -> UsageFilter | None:
        """What the body behind the answer's final head has to pass through, if anything."""
        coding = (head.find(b"content-encoding") or b"").strip().lower()
        self.packed = coding not in (b"", b"identity")
        if not self.asked:
            return None
        streams = (head.find(b"content-type") or b"").strip().lower().startswith(b"text/event-stream")
        chunk = self._policy.chunk
        if streams and chunk is not None and head.status == 200 and not self.packed:
            self._filter = UsageFilter(chunk)
        return self._filter


def _result(asking: Asking, record: Record, *, counted: bool) -> Result:
    if asking.hidden:
        return "hidden"
    if record.status in REFUSALS:
        return "refused"
    if asking.packed:
        return "packed"
    return "shown" if counted and record.streamed else "absent"
