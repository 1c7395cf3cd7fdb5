"""From outputs to the bytes a client reads: OpenAI's JSON and event stream, in the order and shape vLLM writes them.

A stream is: a role event (chat only), one event for every piece of text, the last piece's event with the finish
reason, a usage event with no choices if asked for, `[DONE]`. Pieces are spliced into a text made once a request:
building the JSON anew for each token would cost more than the rest of the way.
"""

import json
from dataclasses import dataclass
from typing import Any

from demo_server.errors import RequestError
from demo_server.intake import Asked
from demo_server.sequence import FinishReason, Output

DONE = b"data: [DONE]\n\n"

_quote = json.JSONEncoder(ensure_ascii=False).encode
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every event of one reply repeats; `created_s` is Unix time."""

    id: str
    created_s: int
    model: str


class EventWriter:
    """Writes the events of one stream."""

    def __init__(self, asked: Asked, stamp: Stamp) -> None:
        chat = asked.form == "chat"
        kind = "chat.completion.chunk" if chat else "text_completion"
        head = {"id": stamp.id, "object": kind, "created": stamp.created_s, "model": stamp.model}
        self._asked = asked
        self._head = "data: " + _compact(head)[:-1]
        self._before = self._head + ',"choices":[{"index":0,' + ('"delta":{"content":' if chat else '"text":')
        self._after = ("}" if chat else "") + ',"logprobs":null,"finish_reason":'

    def opening(self) -> bytes:
        """What precedes the first piece: a chat names the role."""
        if self._asked.form == "completion":
            return b""
        delta = '"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}\n\n'
        return (self._head + ',"choices":[{"index":0,' + delta).encode()

    def piece(self, output: Output) -> bytes:
        """One output's event. None for an output without text that does not end the stream."""
        if output.finish is not None:
            end = f'{_quote(output.finish)},"stop_reason":{_quote(output.stop_reason)}'
        elif output.text:
            end = "null"
        else:
            return b""
        return f"{self._before}{_quote(output.text)}{self._after}{end}}}]}}\n\n".encode()

    def closing(self, completion_tokens: int) -> bytes:
        """What follows the last piece."""
        if not self._asked.include_usage:
            return DONE
        usage = _usage(self._asked, completion_tokens)
        return f'{self._head},"choices":[],"usage":{_compact(usage)}}}\n\n'.encode() + DONE


def error_event(error: RequestError) -> bytes:
    """What ends a stream that broke: an error where a chunk would be, then `[DONE]`."""
    return b"data: " + error_body(error) + b"\n\n" + DONE


def error_body(error: RequestError) -> bytes:
    """OpenAI's error object. A lone surrogate, which a client's JSON can spell, becomes `?`."""
    detail = {"message": error.message, "type": error.kind, "param": error.param, "code": error.status}
    return _compact({"error": detail}).encode(errors="replace")


def whole_body(asked: Asked, stamp: Stamp, *, text: str, last: Output) -> bytes:
    """The reply to a request that does not stream."""
    choice: dict[str, Any] = {"index": 0}
    if asked.form == "chat":
        choice["message"] = {"role": "assistant", "content": text}
    else:
        choice["text"] = text
    finish: FinishReason | None = last.finish
    choice |= {"logprobs": None, "finish_reason": finish, "stop_reason": last.stop_reason}
    body = {
        "id": stamp.id,
        "object": "chat.completion" if asked.form == "chat" else "text_completion",
        "created": stamp.created_s,
        "model": stamp.model,
        "choices": [choice],
        "usage": _usage(asked, last.completion_tokens),
    }
    return _compact(body).encode()


def _usage(asked: Asked, completion_tokens: int) -> dict[str, int]:
    prompt_tokens = len(asked.generation.prompt)
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }
