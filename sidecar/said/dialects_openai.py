"""What the events of the OpenAI APIs say: chat completions, completions, Responses, in all their servers' variants.

Each function takes one parsed event or body and gives its `Event`. Chat's first test is for what nearly every read
brings, a delta with content alone or one choice of text; all else goes the long way.

Variants met (section 3 of the engines' survey, and recorded bytes): role-only first chunks with empty, null or absent
content; reasoning under `reasoning_content` or `reasoning`; tool calls with the name first and arguments in pieces;
refusal; audio; usage in a chunk of its own with empty `choices`, beside an empty delta (LiteLLM), in the last chunk
(llama.cpp, transformers) or in every chunk; llama.cpp's `timings`; `choices: []` chunks that are no usage (SGLang); a
role repeated in every delta (TGI); errors as `{"error": ...}` or `{"object": "error"}` inside a 200 stream.
"""

from collections.abc import Callable

from sidecar.said.dialects_native import llamacpp_event
from sidecar.said.facts import (
    ANSWER,
    MAX_CHOICES,
    NOTHING,
    REASONING,
    UNKNOWN,
    Event,
    Json,
    Usage,
    count,
    error_type,
    event,
    name,
)

Part = Callable[[Json], tuple[bool, bool]]
"""Of one choice: whether it carries reasoning, whether it carries something of the answer."""


def chat_event(chunk: Json) -> Event:
    """One `chat.completion.chunk`."""
    if chunk.get("usage") is None and (choices := chunk.get("choices")) and len(choices) == 1:
        choice = choices[0]
        delta = choice.get("delta")
        if (
            delta
            and delta.get("content")
            and choice.get("finish_reason") is None
            and not choice.get("index")
            and (len(delta) == 1 or not (delta.get("reasoning_content") or delta.get("reasoning")))
        ):
            return ANSWER
    return _event(chunk, _delta_part)


def chat_answer(body: Json) -> Event:
    """A whole `chat.completion`."""
    if (choices := body.get("choices")) and len(choices) == 1 and error_type(body) is None:
        choice = choices[0]
        message, reason = choice.get("message"), name(choice.get("finish_reason"))
        if (
            message
            and message.get("content")
            and reason
            and reason != "error"
            and not choice.get("index")
            and not (message.get("reasoning_content") or message.get("reasoning"))
        ):
            return Event(False, True, 0, ((0, reason),), _usage(body))  # in the order of the fields: half as long
    return _event(body, lambda choice: _message_part(choice.get("message") or {}))


def completions_event(chunk: Json) -> Event:
    """One chunk of a streamed completion, or a whole one: both carry `text`.

    llama.cpp serves its own form on `/completions`, without `choices`.
    """
    if "choices" not in chunk and "content" in chunk:
        return llamacpp_event(chunk)
    return _event(chunk, lambda choice: (False, bool(choice.get("text"))))


def _event(chunk: Json, part: Part) -> Event:
    choices = chunk.get("choices")
    error = error_type(chunk)
    usage = _usage(chunk)
    if choices is None:
        return UNKNOWN if usage is None and error is None else Event(usage=usage, error=error)
    reasoning = answer = False
    finish: list[tuple[int, str]] = []
    highest = 0
    for choice in choices[:MAX_CHOICES]:
        shows_reasoning, shows_answer = part(choice)
        reasoning, answer = reasoning or shows_reasoning, answer or shows_answer
        index = count(choice.get("index")) or 0
        highest = max(highest, index)
        if reason := name(choice.get("finish_reason")):
            finish.append((index, reason))
            error = error or ("error" if reason == "error" else None)
    if highest or error or finish or usage:
        return Event(reasoning, answer, highest, tuple(finish), usage, error)
    return event(reasoning=reasoning, answer=answer)


def _delta_part(choice: Json) -> tuple[bool, bool]:
    return _message_part(choice.get("delta") or {})


def _message_part(message: Json) -> tuple[bool, bool]:
    reasoning = bool(message.get("reasoning_content") or message.get("reasoning"))
    answer = bool(
        message.get("content")
        or message.get("refusal")
        or any(_call_speaks(call) for call in message.get("tool_calls") or ())
        or _function_speaks(message.get("function_call"))
        or _audio_speaks(message.get("audio"))
    )
    return reasoning, answer


def _call_speaks(call: Json) -> bool:
    return _function_speaks(call.get("function")) or _function_speaks(call.get("custom"))


def _function_speaks(function: Json) -> bool:
    return bool(function and (function.get("name") or function.get("arguments") or function.get("input")))


def _audio_speaks(audio: Json) -> bool:
    return bool(audio and (audio.get("data") or audio.get("transcript")))


def _usage(chunk: Json) -> Usage | None:
    usage = chunk.get("usage")
    if usage:
        details = usage.get("completion_tokens_details")
        reasoning = count(details.get("reasoning_tokens")) if details else None
        return Usage(
            count(usage.get("prompt_tokens")),
            count(usage.get("completion_tokens")),
            reasoning or count(usage.get("reasoning_tokens")) or 0,
        )
    if timings := chunk.get("timings"):
        prompt = count(timings.get("prompt_n"))
        cached = count(timings.get("cache_n")) or 0
        return Usage(None if prompt is None else prompt + cached, count(timings.get("predicted_n")))
    return None


# Responses: lifecycle events carry no token; deltas do, by their type.
_RESPONSES_DELTAS = {
    "response.output_text.delta": ANSWER,
    "response.refusal.delta": ANSWER,
    "response.function_call_arguments.delta": ANSWER,
    "response.custom_tool_call_input.delta": ANSWER,
    "response.mcp_call_arguments.delta": ANSWER,
    "response.code_interpreter_call_code.delta": ANSWER,
    "response.audio.delta": ANSWER,
    "response.audio.transcript.delta": ANSWER,
    "response.reasoning_text.delta": REASONING,
    "response.reasoning_summary_text.delta": REASONING,
    "response.reasoning.delta": REASONING,
}
_RESPONSES_ENDS = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
_CALLS = {"function_call", "custom_tool_call", "mcp_call"}


def responses_event(chunk: Json) -> Event:
    """One event of a streamed Response."""
    kind = chunk.get("type")
    if (token := _RESPONSES_DELTAS.get(kind)) is not None:
        return token if chunk.get("delta") else NOTHING
    if kind in _RESPONSES_ENDS:
        return responses_answer(chunk.get("response") or {}, done=True)
    if kind == "response.output_item.added":  # a call's name comes with its item, before its arguments
        item = chunk.get("item") or {}
        return event(answer=item.get("type") in _CALLS and bool(item.get("name")))
    if (error := error_type(chunk)) is not None:
        return Event(error=error)
    return event() if isinstance(kind, str) and kind.startswith("response.") else UNKNOWN


def responses_answer(response: Json, *, done: bool = False) -> Event:
    """A whole Response, or the one that the last event of a stream carries."""
    status = response.get("status")
    usage = response.get("usage") or {}
    details = usage.get("output_tokens_details") or {}
    reason = name((response.get("incomplete_details") or {}).get("reason"))
    failed = status in ("failed", "cancelled") or bool(response.get("error"))
    return Event(
        answer=not done and any(item.get("content") or item.get("name") for item in response.get("output") or ()),
        reasoning=not done and any(item.get("summary") for item in response.get("output") or ()),
        finish=((0, reason or str(status)),) if status in ("completed", "incomplete") else (),
        usage=Usage(
            count(usage.get("input_tokens")),
            count(usage.get("output_tokens")),
            count(details.get("reasoning_tokens")) or 0,
        ),
        error=(error_type(response) or status) if failed else None,
        done=done,
    )


def responses_model(chunk: Json) -> str | None:
    """The model a Response names, in a stream or alone."""
    return name((chunk.get("response") or chunk).get("model"))


def prompts(body: Json) -> int:
    """How many answers a completions request asks for: `n` for each prompt of a list."""
    prompt = body.get("prompt")
    several = len(prompt) if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list) else 1
    return several * choices_asked(body)


def choices_asked(body: Json) -> int:
    """`n` of a request."""
    asked = body.get("n")
    return 1 if asked is None else max(1, count(asked) or 1)
