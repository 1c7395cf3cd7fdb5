"""A stream without the usage chunk that its client did not ask for, every other byte as it came.

`feed` takes the body's bytes (transfer coding undone) and gives those to pass on; `flush`, at the end, gives what is
still held. Any split of the same bytes passes the same ones. Held are an event that is not whole, which no client
could use yet, up to `USAGE_EVENT_BYTES`; and for some engines the event that finishes the answer, until the next.

Hidden is an event of one `data:` line whose JSON has `choices: []` and `usage`, when with it nothing else is lost:
each other member is null, or one that this engine gives only beside usage (`UsageChunk.only_there`), or stood in the
event before with the same value. One case has its remedy. vLLM puts `system_fingerprint` into the chunk that finishes
the answer, but once usage is asked for into the usage chunk instead (`UsageChunk.moves_fingerprint`): it goes back to
where it would have been. A usage chunk that carries more is passed on.
"""

import re

import orjson

from sidecar.engine.engines import UsageChunk
from sidecar.limits import USAGE_EVENT_BYTES
from sidecar.said.facts import Json

FINGERPRINT = "system_fingerprint"

_BARE = frozenset(("id", "object", "created", "model", "choices", "usage"))
_EVENT_END = re.compile(rb"\n\r?\n")
_EVENT_END_BYTES = 3
_KEY, _UNFINISHED = b'"finish_reason"', b'"finish_reason":null'
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')


class UsageFilter:
    """Passes one stream on. `hidden` counts the events taken out of it."""

    __slots__ = ("_chunk", "_finish", "_last", "_long", "_off", "_part", "hidden")

    def __init__(self, chunk: UsageChunk) -> None:
        self.hidden = 0
        self._off = False
        self._chunk = chunk
        self._part = b""  # of an event that is not whole; of one too long to hold, its last passed bytes
        self._long = False
        self._finish = b""  # the event that finishes the answer, until the next one is known
        self._last = b""  # what ends in the latest event that was no comment, or in comments behind it

    @property
    def held(self) -> bytes:
        """What has come and was not passed on, in its order."""
        return self._finish if self._long else self._finish + self._part

    @property
    def holds_finish(self) -> bool:
        """Whether a whole event waits for the next one."""
        return bool(self._finish)

    @property
    def is_clear(self) -> bool:
        """Whether nothing is held, nor was passed on in part."""
        return not self._part and not self._finish

    def passed(self, data: bytes) -> None:
        """Whole events that went to the client without coming here, having a token and no usage."""
        self._last = data

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on now."""
        if self._off or self._is_clear(data):
            return data
        passed = []
        if self._long:
            rest, data = self._end_of_long(data)
            passed.append(rest)
        known, data = len(self._part), self._part + data
        self._part, start = b"", 0
        while (end := _EVENT_END.search(data, max(start, known - _EVENT_END_BYTES))) is not None:
            passed.append(self._take(data[start : end.end()]))
            start = known = end.end()
        self._part = data[start:]
        if len(self._part) > USAGE_EVENT_BYTES:
            passed += (self.release(), self._part)
            self._last = b""
            self._long, self._part = True, self._part[-_EVENT_END_BYTES + 1 :]
        return b"".join(passed)

    def _is_clear(self, data: bytes) -> bool:
        """Whether whole events came that need no look, as nearly every read brings."""
        if self._part or self._finish or not data.endswith(b"\n\n") or data.find(b"[]") >= 0 or data.startswith(b":"):
            return False
        if self._chunk.moves_fingerprint and data.count(_KEY) > data.count(_UNFINISHED) and _FINISH.search(data):
            return False
        self._last = data
        return True

    def _end_of_long(self, data: bytes) -> tuple[bytes, bytes]:
        """Of bytes within a long event: those up to its end, and those behind it."""
        joined = self._part + data
        end = _EVENT_END.search(joined)
        if end is None:
            self._part = joined[-_EVENT_END_BYTES + 1 :]
            return data, b""
        cut = end.end() - len(self._part)
        self._long, self._part = False, b""
        return data[:cut], data[cut:]

    def release(self) -> bytes:
        """The event that waited for the next one, which must then do without it."""
        finish, self._finish = self._finish, b""
        return finish

    def flush(self) -> bytes:
        """All that is held; the stream has ended."""
        held = self.held
        self._finish = self._part = b""
        return held

    def give_up(self) -> bytes:
        """All that is held; from now on everything passes."""
        self._off = True
        return self.flush()

    def _take(self, event: bytes) -> bytes:
        """What a whole event lets through: itself, the one that waited for it, or neither."""
        before = self.release()
        if len(event) > USAGE_EVENT_BYTES:
            self._last = b""  # as if it had come in pieces, and was never held
            return before + event
        if b"[]" in event:
            without = self._without(event, before)
            if without is not None:
                self.hidden += 1
                return without
        if not event.startswith(b":"):
            self._last = event
        if self._chunk.moves_fingerprint and _FINISH.search(event):
            self._finish = event
            return before
        return before + event

    def _without(self, event: bytes, before: bytes) -> bytes | None:
        """What to pass on instead of a usage chunk and the event that waited for it; None when it is none, or holds
        something that would be lost."""
        bare = event.lstrip(b"\r\n")
        chunk = _sole_data(bare)
        if chunk is None or chunk.get("choices") != [] or not isinstance(chunk.get("usage"), dict):
            return None
        others = {key for key, value in chunk.items() if value is not None} - _BARE - set(self._chunk.only_there)
        latest = _latest_data(self._last) if others else {}
        lost = {key for key in others if latest.get(key) != chunk[key]}
        if lost == {FINGERPRINT} and before and latest and FINGERPRINT not in latest:
            before = _with_fingerprint(before, chunk[FINGERPRINT])
        elif lost:
            return None
        return before + event[: len(event) - len(bare)]


def _sole_data(event: bytes) -> dict[str, Json] | None:
    """The JSON object of an event that is one `data:` line and nothing else."""
    line = event.strip(b"\r\n")
    if b"\n" in line or not line.startswith(b"data:"):
        return None
    try:
        value = orjson.loads(line[5:])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _latest_data(events: bytes) -> dict[str, Json]:
    """The JSON object of the last event that is no comment; empty when it is none, or too long to have been held."""
    start, latest = 0, b""
    for end in _EVENT_END.finditer(events):
        event, start = events[start : end.end()], end.end()
        latest = latest if event.startswith(b":") else event
    return (_sole_data(latest) or {}) if len(latest) <= USAGE_EVENT_BYTES else {}


def _with_fingerprint(event: bytes, value: Json) -> bytes:
    """The event with the fingerprint as the last member of its object."""
    end = event.rindex(b"}")
    return b'%b,"%b":%b%b' % (event[:end], FINGERPRINT.encode(), orjson.dumps(value), event[end:])
