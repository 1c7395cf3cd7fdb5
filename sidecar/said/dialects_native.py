"""What the events of engines' own APIs say: Anthropic messages, TGI, Ollama, llama.cpp, SGLang, Triton.

Each function takes one parsed event or body and gives its `Event`; see `facts` for what it may raise.
"""

from sidecar.said.facts import ANSWER, NOTHING, REASONING, UNKNOWN, Event, Json, Usage, count, error_type, event, name


def plain_model(chunk: Json) -> str | None:
    """The model that an event names at its top."""
    return name(chunk.get("model")) if isinstance(chunk, dict) else None


# Anthropic messages. `message_delta` repeats the whole count: it replaces, it is never added. The few output tokens of
# `message_start` are no count of the answer.
_ANTHROPIC_DELTAS = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}


def anthropic_event(chunk: Json) -> Event:
    """One event of a streamed message."""
    kind = chunk.get("type")
    if kind == "content_block_delta":
        delta = chunk["delta"]
        form = delta.get("type")
        if not delta.get(_ANTHROPIC_DELTAS.get(form, "")):
            return NOTHING
        return REASONING if form == "thinking_delta" else ANSWER
    if kind == "message_start":
        return event(usage=Usage(_anthropic_input(chunk["message"].get("usage") or {})))
    if kind == "content_block_start":  # a tool's name comes with its block, before its arguments
        return event(answer=bool((chunk.get("content_block") or {}).get("name")))
    if kind == "message_delta":
        usage = chunk.get("usage") or {}
        reason = name((chunk.get("delta") or {}).get("stop_reason"))
        counts = Usage(_anthropic_input(usage), count(usage.get("output_tokens")))
        return event(finish=((0, reason),) if reason else (), usage=counts)
    if kind == "message_stop":
        return Event(done=True)
    if kind in ("ping", "content_block_stop"):
        return NOTHING
    error = error_type(chunk)
    return UNKNOWN if error is None else Event(error=error)


def anthropic_answer(body: Json) -> Event:
    """A whole message."""
    if (error := error_type(body)) is not None:
        return Event(error=error)
    usage = body.get("usage") or {}
    reason = name(body.get("stop_reason"))
    blocks = body.get("content")
    return event(
        answer=any(block.get("text") or block.get("name") for block in blocks),
        reasoning=any(block.get("thinking") for block in blocks),
        finish=((0, reason),) if reason else (),
        usage=Usage(_anthropic_input(usage), count(usage.get("output_tokens"))),
    )


def anthropic_model(chunk: Json) -> str | None:
    """The model that `message_start` or a whole message names."""
    return name((chunk.get("message") or chunk).get("model"))


def _anthropic_input(usage: Json) -> int | None:
    fresh = count(usage.get("input_tokens"))
    if fresh is None:
        return None
    cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return fresh + sum(count(usage.get(key)) or 0 for key in cached)


# TGI: a frame is a token, special ones too; the last also carries the whole text and the details.
def tgi_event(chunk: Json) -> Event:
    """One frame of `/generate_stream`, or the whole answer of `/generate`."""
    if (error := error_type(chunk)) is not None:
        return Event(error=error)
    if isinstance(chunk, list):  # `/` answers with a list of one
        chunk = chunk[0]
    token = chunk.get("token")
    text = chunk.get("generated_text")
    if token is None and text is None:
        return UNKNOWN
    answer = bool(token.get("text")) if token is not None else bool(text)
    if text is None:
        return ANSWER if answer else NOTHING
    details = chunk.get("details") or {}
    reason = name(details.get("finish_reason"))
    return Event(
        answer=answer,
        finish=((0, reason),) if reason else (),
        usage=Usage(
            count(details.get("input_length")) if "input_length" in details else _length(details.get("prefill")),
            count(details.get("generated_tokens")),
        ),
        done=True,
    )


def _length(prefill: Json) -> int | None:
    return len(prefill) if isinstance(prefill, list) and prefill else None


# Ollama: one JSON object a line; counts and `done_reason` in the last. Durations there are nanoseconds.
def ollama_event(chunk: Json) -> Event:
    """One line of `/api/chat` or `/api/generate`, or the whole answer of either: the forms are the same."""
    if (error := error_type(chunk)) is not None:
        return Event(error=error)
    if "done" not in chunk:
        return UNKNOWN
    message = chunk.get("message") or {}
    reasoning = bool(message.get("thinking") or chunk.get("thinking"))
    answer = bool(message.get("content") or chunk.get("response") or message.get("tool_calls"))
    if not chunk["done"]:
        return event(reasoning=reasoning, answer=answer)
    reason = name(chunk.get("done_reason"))
    return Event(
        reasoning=reasoning,
        answer=answer,
        finish=((0, reason),) if reason else (),
        usage=Usage(count(chunk.get("prompt_eval_count")), count(chunk.get("eval_count"))),
        done=True,
    )


# llama.cpp's own API: `tokens_predicted` counts in every frame, `stop: true` is the last.
def llamacpp_event(chunk: Json) -> Event:
    """One frame of `/completion`, or its whole answer."""
    if (error := error_type(chunk)) is not None:
        return Event(error=error)
    if "content" not in chunk:
        return UNKNOWN
    answer = bool(chunk["content"])
    usage = Usage(count(chunk.get("tokens_evaluated")), count(chunk.get("tokens_predicted")))
    index = count(chunk.get("index")) or 0
    if not chunk.get("stop"):
        return Event(answer=answer, choice=index, usage=usage)
    reason = name(chunk.get("stop_type"))
    return Event(
        answer=answer,
        choice=index,
        finish=((index, reason),) if reason and reason != "none" else (),
        usage=usage,
        done=True,
    )


# SGLang: `text` is the whole answer so far unless the server streams increments; the count of tokens grows in both. Of
# several samples each frame speaks of the one that `index` names, its counts too.
def sglang_event(chunk: Json) -> Event:
    """One frame of a streamed `/generate`, or its whole answer."""
    if (error := error_type(chunk)) is not None:
        return Event(error=error)
    if isinstance(chunk, list):  # several prompts or samples answer with a list, in one body
        return _together([sglang_event(item) for item in chunk])
    meta = chunk.get("meta_info")
    if meta is None:
        return UNKNOWN
    tokens = count(meta.get("completion_tokens"))
    finish = meta.get("finish_reason") or {}
    reason = name(finish.get("type") if isinstance(finish, dict) else finish)
    index = count(chunk.get("index")) or 0
    return Event(
        answer=bool(chunk.get("text") or chunk.get("output_ids")),
        choice=index,
        finish=((index, reason),) if reason else (),
        usage=Usage(count(meta.get("prompt_tokens")), tokens, count(meta.get("reasoning_tokens")) or 0),
        error="abort" if reason == "abort" else None,
        progress=tokens if tokens is not None else len(chunk.get("text") or ""),
    )


def _together(parts: list[Event]) -> Event:
    """Answers of one body. Whether they share their prompt is not told, so nothing is known of the input's tokens."""
    outputs = [part.usage.output_tokens for part in parts if part.usage is not None]
    counted = [output for output in outputs if output is not None]
    return Event(
        answer=any(part.answer for part in parts),
        choice=max(0, len(parts) - 1),
        finish=tuple((index, reason) for index, part in enumerate(parts) for _, reason in part.finish),
        usage=Usage(None, sum(counted)) if counted else None,
        error=next((part.error for part in parts if part.error), None),
        known=all(part.known for part in parts),
    )


# Triton's generate extension: no end mark, no counts.
def triton_event(chunk: Json) -> Event:
    """One frame of `generate_stream`, or the whole answer of `generate`."""
    if (error := error_type(chunk)) is not None:
        return Event(error=error)
    if "text_output" not in chunk:
        return UNKNOWN
    return ANSWER if chunk["text_output"] else NOTHING


def triton_model(chunk: Json) -> str | None:
    """The model that a frame names."""
    return name(chunk.get("model_name"))
