"""One HTTP reply as it streams in: bytes and the time they came in, a timeline of tokens out.

No clock and no socket: the reader is fed `(bytes, at_s)` and any split of the bytes gives the same timeline but for
the times. A token event is one that carries generated payload (DESIGN 5): a role, an empty delta, usage or a comment
is none. A fault of the peer's never raises here: it is kept in `error`.
"""

from collections.abc import Iterable, Mapping
from typing import TypeGuard

import httptools
import orjson

TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal", "audio")
DONE = b"[DONE]"
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_ERROR_CHARS = 300
MAX_USAGE = 1_000_000_000
"""Tokens of one request; a server that says more, or less than none, has not counted them."""


def carries_token(event: Mapping[str, object]) -> bool:
    """Whether an OpenAI chat or completions event holds generated payload."""
    return any(_choice_has_payload(choice) for choice in _objects(event.get("choices")))


def _choice_has_payload(choice: Mapping[str, object]) -> bool:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return bool(choice.get("text"))
    if any(delta.get(field) for field in TEXT_FIELDS):
        return True
    calls = (call.get("function") for call in _objects(delta.get("tool_calls")))
    return any(isinstance(call, dict) and bool(call.get("name") or call.get("arguments")) for call in calls)


def _is_count(tokens: object) -> TypeGuard[int]:
    return isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= MAX_USAGE


def _objects(value: object) -> Iterable[Mapping[str, object]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


class Reply:
    """The reply to one request; what stands in its attributes is true of the bytes so far."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None
        self.events = 0
        self.input_tokens: int | None = None
        self.usage_tokens: int | None = None
        self.error = ""
        self.is_complete = False
        self.can_keep_alive = False
        self.has_begun = False
        self._parser = httptools.HttpResponseParser(self)
        self._at_s = 0.0
        self._is_stream = False
        self._is_delimited_by_close = True
        self._line = bytearray()
        self._data: list[bytes] = []

    @property
    def output_tokens(self) -> int:
        """Tokens by the server's usage where it gave one, else events counted."""
        return self.events if self.usage_tokens is None else self.usage_tokens

    @property
    def has_failed(self) -> bool:
        """Whether nothing that could still come would complete this reply."""
        return bool(self.error) and not self.is_complete

    def feed(self, data: bytes, at_s: float) -> None:
        """Read bytes that came in at `at_s`."""
        self._at_s = at_s
        self.has_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the reply is not HTTP/1.1: {error}")

    def end(self) -> None:
        """The connection is closed: the end of a reply that states no length, a fault of any other."""
        if self.is_complete or self.error:
            return
        if self.status is not None and self._is_delimited_by_close:
            self.is_complete = True
        else:
            self._fail("the connection closed before the end of the reply")

    # What httptools calls as it reads.

    def on_header(self, name: bytes, value: bytes) -> None:
        lowered = name.lower()
        if lowered == b"content-type":
            self._is_stream = value.lower().startswith(b"text/event-stream")
        if lowered in (b"content-length", b"transfer-encoding"):
            self._is_delimited_by_close = False

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.can_keep_alive = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        if not self._is_stream or self.status != 200:
            self._line += body[: MAX_ERROR_CHARS * 4 - len(self._line)]
            return
        *lines, rest = body.split(b"\n")
        for line in lines:
            self._take_line(bytes(self._line) + line if self._line else line)
            self._line.clear()
        self._line += rest
        if len(self._line) > MAX_LINE_BYTES:
            self._fail(f"a line of the stream is longer than {MAX_LINE_BYTES} bytes")
            self._line.clear()

    def on_message_complete(self) -> None:
        self.is_complete = True
        if self.status is not None and self.status != 200:
            self._fail(bytes(self._line).decode("utf-8", "replace"))
        elif not self._is_stream:
            self._fail("the reply is no event stream")

    def _take_line(self, line: bytes) -> None:
        line = line.removesuffix(b"\r")
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            self._take_event(b"\n".join(self._data))
            self._data.clear()

    def _take_event(self, data: bytes) -> None:
        if data == DONE:
            return
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            self._fail("an event of the stream is not JSON")
            return
        if not isinstance(event, dict):
            self._fail("an event of the stream is no JSON object")
            return
        if event.get("error"):
            self._fail(str(event["error"]))
        if carries_token(event):
            self.events += 1
            self.last_token_s = self._at_s
            if self.first_token_s is None:
                self.first_token_s = self._at_s
        self._take_usage(event.get("usage"))

    def _take_usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        self.input_tokens = prompt if _is_count(prompt) else self.input_tokens
        self.usage_tokens = completion if _is_count(completion) else self.usage_tokens

    def _fail(self, error: str) -> None:
        self.error = self.error or error[:MAX_ERROR_CHARS]
