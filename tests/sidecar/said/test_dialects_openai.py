"""What single events of the OpenAI APIs say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.said.dialects_openai import (
    chat_answer,
    chat_event,
    completions_event,
    responses_answer,
    responses_event,
    responses_model,
)
from sidecar.said.facts import ANSWER, NOTHING, REASONING, STRANGE, UNKNOWN, Event, Usage


def delta(fields: Any, **choice: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": None, **choice}]}


CHAT_EVENTS: dict[str, tuple[Any, Event]] = {
    "content is an answer": (delta({"content": "x"}), ANSWER),
    "a blank is content": (delta({"content": " "}), ANSWER),
    "content beside null reasoning (SGLang)": (
        delta({"role": None, "content": "x", "reasoning_content": None, "tool_calls": None}),
        ANSWER,
    ),
    "content and reasoning at once": (
        delta({"content": "x", "reasoning": "y"}),
        Event(reasoning=True, answer=True),
    ),
    "role alone": (delta({"role": "assistant"}), NOTHING),
    "empty content": (delta({"role": "assistant", "content": ""}), NOTHING),
    "null content": (delta({"role": "assistant", "content": None}), NOTHING),
    "an empty delta": (delta({}), NOTHING),
    "a null delta": (delta(None), NOTHING),
    "reasoning_content": (delta({"reasoning_content": "x"}), REASONING),
    "reasoning": (delta({"reasoning": "x"}), REASONING),
    "empty reasoning": (delta({"reasoning": "", "content": ""}), NOTHING),
    "a tool call's name": (delta({"tool_calls": [{"function": {"name": "f", "arguments": ""}}]}), ANSWER),
    "a tool call's arguments": (delta({"tool_calls": [{"function": {"arguments": "{"}}]}), ANSWER),
    "a tool call that says nothing yet": (delta({"tool_calls": [{"index": 0, "id": "c", "function": {}}]}), NOTHING),
    "a custom tool's input": (delta({"tool_calls": [{"custom": {"input": "x"}}]}), ANSWER),
    "no tool calls": (delta({"tool_calls": []}), NOTHING),
    "a function call": (delta({"function_call": {"name": "f"}}), ANSWER),
    "a refusal": (delta({"refusal": "no"}), ANSWER),
    "audio data": (delta({"audio": {"data": "QUJD"}}), ANSWER),
    "audio transcript": (delta({"audio": {"transcript": "x"}}), ANSWER),
    "audio id alone": (delta({"audio": {"id": "a"}}), NOTHING),
    "a finish": (delta({}, finish_reason="stop"), Event(finish=((0, "stop"),))),
    "a finish with content": (
        delta({"content": "x"}, finish_reason="length"),
        Event(answer=True, finish=((0, "length"),)),
    ),
    "a finish of error": (delta({}, finish_reason="error"), Event(finish=((0, "error"),), error="error")),
    "another choice": (delta({"content": "x"}, index=2), Event(answer=True, choice=2)),
    "two choices in one event": (
        {"choices": [{"index": 0, "delta": {}}, {"index": 1, "delta": {"content": "x"}, "finish_reason": "stop"}]},
        Event(answer=True, choice=1, finish=((1, "stop"),)),
    ),
    "usage with empty choices": (
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}},
        Event(usage=Usage(3, 5)),
    ),
    "usage beside content": (
        {**delta({"content": "x"}), "usage": {"prompt_tokens": 3, "completion_tokens": 5}},
        Event(answer=True, usage=Usage(3, 5)),
    ),
    "usage with reasoning tokens": (
        {"choices": [], "usage": {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}}},
        Event(usage=Usage(None, 9, 4)),
    ),
    "usage with null details": (
        {"choices": [], "usage": {"completion_tokens": 9, "completion_tokens_details": None}},
        Event(usage=Usage(None, 9)),
    ),
    "null usage": ({**delta({"content": "x"}), "usage": None}, ANSWER),
    "counts that cannot be": (
        {"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": "5"}},
        Event(usage=Usage(None, None)),
    ),
    "timings of llama.cpp": (
        {**delta({}, finish_reason="stop"), "timings": {"cache_n": 2, "prompt_n": 3, "predicted_n": 5}},
        Event(finish=((0, "stop"),), usage=Usage(5, 5)),
    ),
    "empty choices alone": ({"choices": []}, NOTHING),
    "an error": ({"error": {"type": "server_error"}}, Event(error="server_error")),
    "an error beside choices": (
        {**delta({}, finish_reason="error"), "error": {"code": 502}},
        Event(finish=((0, "error"),), error="502"),
    ),
    "a foreign object": ({"hello": 1}, UNKNOWN),
}


@pytest.mark.parametrize("sentence", CHAT_EVENTS)
def test_chat_events(sentence: str) -> None:
    chunk, expected = CHAT_EVENTS[sentence]
    assert chat_event(chunk) == expected


def whole(message: Any, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **fields}


CHAT_ANSWERS: dict[str, tuple[Any, Event]] = {
    "an answer with usage": (
        whole({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": 2}),
        Event(answer=True, finish=((0, "stop"),), usage=Usage(1, 2)),
    ),
    "an answer with usage in full": (
        whole(
            {"role": "assistant", "content": "x", "refusal": None},
            usage={
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "prompt_tokens_details": None,
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
        ),
        Event(answer=True, finish=((0, "stop"),), usage=Usage(1, 2, 1)),
    ),
    "an answer without usage": (whole({"content": "x"}), Event(answer=True, finish=((0, "stop"),))),
    "an answer with reasoning": (
        whole({"content": "x", "reasoning_content": "y"}),
        Event(reasoning=True, answer=True, finish=((0, "stop"),)),
    ),
    "an answer without a reason to end": (
        {"choices": [{"message": {"content": "x"}, "finish_reason": None}]},
        Event(answer=True),
    ),
    "an answer broken off by an error": (
        {"choices": [{"message": {"content": "x"}, "finish_reason": "error"}]},
        Event(answer=True, finish=((0, "error"),), error="error"),
    ),
    "an answer beside an error": (
        whole({"content": "x"}, error={"type": "overloaded"}),
        Event(answer=True, finish=((0, "stop"),), error="overloaded"),
    ),
    "an answer with an index of its own": (
        {"choices": [{"index": 1, "message": {"content": "x"}, "finish_reason": "stop"}]},
        Event(answer=True, choice=1, finish=((1, "stop"),)),
    ),
    "two answers": (
        {"choices": [{"index": n, "message": {"content": "x"}, "finish_reason": "stop"} for n in range(2)]},
        Event(answer=True, choice=1, finish=((0, "stop"), (1, "stop"))),
    ),
    "an answer of tool calls": (
        whole({"content": None, "tool_calls": [{"function": {"name": "f"}}]}),
        Event(answer=True, finish=((0, "stop"),)),
    ),
    "an empty answer": (whole({"role": "assistant", "content": ""}), Event(finish=((0, "stop"),))),
    "an error with status 200": ({"object": "error", "type": "x"}, Event(error="x")),
}


@pytest.mark.parametrize("sentence", CHAT_ANSWERS)
def test_chat_answers(sentence: str) -> None:
    body, expected = CHAT_ANSWERS[sentence]
    assert chat_answer(body) == expected


COMPLETION_EVENTS: dict[str, tuple[Any, Event]] = {
    "text": ({"choices": [{"index": 0, "text": "x", "finish_reason": None}]}, ANSWER),
    "no text": ({"choices": [{"index": 0, "text": "", "finish_reason": None}]}, NOTHING),
    "text of another prompt": ({"choices": [{"index": 3, "text": "x"}]}, Event(answer=True, choice=3)),
    "llama.cpp's own form": (
        {"content": "x", "stop": False, "tokens_predicted": 1, "tokens_evaluated": 4},
        Event(answer=True, usage=Usage(4, 1)),
    ),
    "an error": ({"error": {"type": "t"}}, Event(error="t")),
}


@pytest.mark.parametrize("sentence", COMPLETION_EVENTS)
def test_completions_events(sentence: str) -> None:
    chunk, expected = COMPLETION_EVENTS[sentence]
    assert completions_event(chunk) == expected


RESPONSES_EVENTS: dict[str, tuple[Any, Event]] = {
    "created": ({"type": "response.created", "response": {"model": "m"}}, NOTHING),
    "text": ({"type": "response.output_text.delta", "delta": "x"}, ANSWER),
    "empty text": ({"type": "response.output_text.delta", "delta": ""}, NOTHING),
    "reasoning": ({"type": "response.reasoning_text.delta", "delta": "x"}, REASONING),
    "a summary of reasoning": ({"type": "response.reasoning_summary_text.delta", "delta": "x"}, REASONING),
    "arguments": ({"type": "response.function_call_arguments.delta", "delta": "{"}, ANSWER),
    "a call's name": ({"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}}, ANSWER),
    "a message begins": ({"type": "response.output_item.added", "item": {"type": "message"}}, NOTHING),
    "a refusal": ({"type": "response.refusal.delta", "delta": "no"}, ANSWER),
    "done text": ({"type": "response.output_text.done", "text": "x"}, NOTHING),
    "completed": (
        {"type": "response.completed", "response": {"status": "completed", "usage": {"output_tokens": 4}}},
        Event(finish=((0, "completed"),), usage=Usage(None, 4), done=True),
    ),
    "incomplete": (
        {
            "type": "response.incomplete",
            "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": None},
        },
        Event(finish=((0, "max_output_tokens"),), usage=Usage(), done=True),
    ),
    "failed": (
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}},
        Event(usage=Usage(), error="server_error", done=True),
    ),
    "an error event": ({"type": "error", "code": "rate_limit_exceeded"}, Event(error="rate_limit_exceeded")),
    "a foreign type": ({"type": "ping"}, UNKNOWN),
}


@pytest.mark.parametrize("sentence", RESPONSES_EVENTS)
def test_responses_events(sentence: str) -> None:
    chunk, expected = RESPONSES_EVENTS[sentence]
    assert responses_event(chunk) == expected


def test_a_whole_response() -> None:
    body = {
        "model": "m",
        "status": "completed",
        "error": None,
        "output": [{"type": "reasoning", "summary": []}, {"type": "message", "content": [{"text": "x"}]}],
        "usage": {"input_tokens": 7, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 2}},
    }
    assert responses_answer(body) == Event(answer=True, finish=((0, "completed"),), usage=Usage(7, 9, 2))
    assert responses_model(body) == "m"
    assert responses_model({"type": "response.created", "response": {"model": "n"}}) == "n"


KEYS = [
    "choices", "delta", "message", "index", "finish_reason", "content", "reasoning", "tool_calls", "function", "audio",
    "usage", "completion_tokens", "completion_tokens_details", "timings", "error", "type", "text", "response", "output",
    "item", "name", "stop", "incomplete_details", "status",
]  # fmt: skip
WORDS = ["response.completed", "response.output_text.delta", "response.output_item.added", "error", "stop", "", "x"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 62) | st.floats() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "read", [chat_event, chat_answer, completions_event, responses_event, responses_answer, responses_model]
)
@given(value=VALUES)
def test_a_strange_shape_is_an_event_or_one_of_the_strange_errors(read: Any, value: Any) -> None:
    try:
        found = read(value)
    except STRANGE:
        return
    assert found is None or isinstance(found, Event | str)
