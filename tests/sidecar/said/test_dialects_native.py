"""What single events of engines' own APIs say."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.said.dialects_native import (
    anthropic_answer,
    anthropic_event,
    anthropic_model,
    llamacpp_event,
    ollama_event,
    plain_model,
    sglang_event,
    tgi_event,
    triton_event,
    triton_model,
)
from sidecar.said.facts import ANSWER, NOTHING, REASONING, STRANGE, UNKNOWN, Event, Usage

Table = dict[str, tuple[Callable[[Any], Event], Any, Event]]


def block_delta(**fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": fields}


ANTHROPIC: Table = {
    "text": (anthropic_event, block_delta(type="text_delta", text="x"), ANSWER),
    "empty text": (anthropic_event, block_delta(type="text_delta", text=""), NOTHING),
    "thinking": (anthropic_event, block_delta(type="thinking_delta", thinking="x"), REASONING),
    "a tool's arguments": (anthropic_event, block_delta(type="input_json_delta", partial_json="{"), ANSWER),
    "a signature is no token": (anthropic_event, block_delta(type="signature_delta", signature="x"), NOTHING),
    "a tool's name": (
        anthropic_event,
        {"type": "content_block_start", "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
        ANSWER,
    ),
    "a text block begins": (
        anthropic_event,
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        NOTHING,
    ),
    "the start counts input alone, cached input too": (
        anthropic_event,
        {
            "type": "message_start",
            "message": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 2}},
        },
        Event(usage=Usage(13)),
    ),
    "a ping": (anthropic_event, {"type": "ping"}, NOTHING),
    "the delta of the message": (
        anthropic_event,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        Event(finish=((0, "tool_use"),), usage=Usage(None, 7)),
    ),
    "the end": (anthropic_event, {"type": "message_stop"}, Event(done=True)),
    "an error": (anthropic_event, {"type": "error", "error": {"type": "api_error"}}, Event(error="api_error")),
    "a foreign type": (anthropic_event, {"type": "hello"}, UNKNOWN),
    "a whole message": (
        anthropic_answer,
        {
            "content": [{"type": "text", "text": "x"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
        Event(answer=True, finish=((0, "end_turn"),), usage=Usage(1, 2)),
    ),
    "a whole error": (anthropic_answer, {"type": "error", "error": {"type": "api_error"}}, Event(error="api_error")),
}

DETAILS = {"finish_reason": "length", "generated_tokens": 4, "input_length": 9}
TGI: Table = {
    "a token": (tgi_event, {"token": {"text": "x", "special": False}, "generated_text": None}, ANSWER),
    "a special token": (tgi_event, {"token": {"text": "</s>", "special": True}, "generated_text": None}, ANSWER),
    "a token without text": (tgi_event, {"token": {"text": ""}, "generated_text": None}, NOTHING),
    "the last token": (
        tgi_event,
        {"token": {"text": "x"}, "generated_text": "ax", "details": DETAILS},
        Event(answer=True, finish=((0, "length"),), usage=Usage(9, 4), done=True),
    ),
    "the last token without details": (
        tgi_event,
        {"token": {"text": "x"}, "generated_text": "ax", "details": None},
        Event(answer=True, usage=Usage(), done=True),
    ),
    "a whole answer": (
        tgi_event,
        {"generated_text": "ax", "details": {"finish_reason": "eos_token", "generated_tokens": 2, "prefill": [{}, {}]}},
        Event(answer=True, finish=((0, "eos_token"),), usage=Usage(2, 2), done=True),
    ),
    "a whole answer in a list": (tgi_event, [{"generated_text": "ax"}], Event(answer=True, usage=Usage(), done=True)),
    "an error": (tgi_event, {"error": "x", "error_type": "overloaded"}, Event(error="overloaded")),
    "a foreign object": (tgi_event, {"hello": 1}, UNKNOWN),
}

OLLAMA: Table = {
    "chat": (ollama_event, {"message": {"content": "x"}, "done": False}, ANSWER),
    "thinking": (ollama_event, {"message": {"content": "", "thinking": "x"}, "done": False}, REASONING),
    "a tool call": (
        ollama_event,
        {"message": {"content": "", "tool_calls": [{"function": {}}]}, "done": False},
        ANSWER,
    ),
    "generate": (ollama_event, {"response": "x", "done": False}, ANSWER),
    "thinking of generate": (ollama_event, {"response": "", "thinking": "x", "done": False}, REASONING),
    "the last line": (
        ollama_event,
        {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 6},
        Event(finish=((0, "stop"),), usage=Usage(4, 6), done=True),
    ),
    "a whole answer": (
        ollama_event,
        {"message": {"content": "x"}, "done": True, "eval_count": 1},
        Event(answer=True, usage=Usage(None, 1), done=True),
    ),
    "an error": (ollama_event, {"error": "no model runner"}, Event(error="error")),
    "a foreign object": (ollama_event, {"status": "pulling"}, UNKNOWN),
}

LLAMACPP: Table = {
    "content": (
        llamacpp_event,
        {"content": "x", "stop": False, "tokens_predicted": 3, "tokens_evaluated": 5},
        Event(answer=True, usage=Usage(5, 3)),
    ),
    "progress of the prompt": (
        llamacpp_event,
        {"content": "", "stop": False, "tokens_predicted": 0, "tokens_evaluated": 5, "prompt_progress": {}},
        Event(usage=Usage(5, 0)),
    ),
    "the last frame": (
        llamacpp_event,
        {"content": "", "stop": True, "stop_type": "word", "tokens_predicted": 3, "tokens_evaluated": 5},
        Event(finish=((0, "word"),), usage=Usage(5, 3), done=True),
    ),
    "another answer": (llamacpp_event, {"content": "x", "index": 1}, Event(answer=True, choice=1, usage=Usage())),
    "an error": (llamacpp_event, {"error": {"code": 500, "type": "server_error"}}, Event(error="server_error")),
    "a foreign object": (llamacpp_event, {"slots": 1}, UNKNOWN),
}


def frame(text: str, tokens: int, finish: Any = None, **fields: Any) -> dict[str, Any]:
    meta = {"prompt_tokens": 5, "completion_tokens": tokens, "finish_reason": finish}
    return {"text": text, "meta_info": meta, **fields}


SGLANG: Table = {
    "a frame says how far it is": (sglang_event, frame("ab", 2), Event(answer=True, usage=Usage(5, 2), progress=2)),
    "a finish": (
        sglang_event,
        frame("ab", 2, {"type": "length", "length": 2}),
        Event(answer=True, finish=((0, "length"),), usage=Usage(5, 2), progress=2),
    ),
    "an abort is an error": (
        sglang_event,
        frame("", 0, {"type": "abort", "message": "x"}),
        Event(finish=((0, "abort"),), usage=Usage(5, 0), progress=0, error="abort"),
    ),
    "without counts the text's length is the progress": (
        sglang_event,
        {"text": "abc", "meta_info": {}},
        Event(answer=True, usage=Usage(), progress=3),
    ),
    "one of several samples": (
        sglang_event,
        frame("ab", 2, {"type": "stop"}, index=1),
        Event(answer=True, choice=1, finish=((1, "stop"),), usage=Usage(5, 2), progress=2),
    ),
    "a batch": (
        sglang_event,
        [frame("a", 1, {"type": "stop"}), frame("b", 3, {"type": "length"})],
        Event(answer=True, choice=1, finish=((0, "stop"), (1, "length")), usage=Usage(None, 4)),
    ),
    "a batch of which one is nothing known": (
        sglang_event,
        [frame("a", 1), {"hello": 1}],
        Event(answer=True, choice=1, usage=Usage(None, 1), known=False),
    ),
    "an empty batch": (sglang_event, [], NOTHING),
    "an error": (sglang_event, {"error": {"message": "x"}}, Event(error="error")),
    "a foreign object": (sglang_event, {"hello": 1}, UNKNOWN),
}

TRITON: Table = {
    "text": (triton_event, {"model_name": "e", "text_output": "x"}, ANSWER),
    "no text": (triton_event, {"model_name": "e", "text_output": ""}, NOTHING),
    "an error": (triton_event, {"error": "in ensemble"}, Event(error="error")),
    "a foreign object": (triton_event, {"outputs": []}, UNKNOWN),
}

TABLES = {
    "Anthropic": ANTHROPIC,
    "TGI": TGI,
    "Ollama": OLLAMA,
    "llama.cpp": LLAMACPP,
    "SGLang": SGLANG,
    "Triton": TRITON,
}
ROWS = [(server, sentence) for server, table in TABLES.items() for sentence in table]


@pytest.mark.parametrize(("server", "sentence"), ROWS)
def test_events(server: str, sentence: str) -> None:
    read, chunk, expected = TABLES[server][sentence]
    assert read(chunk) == expected


def test_models() -> None:
    assert plain_model({"model": "m"}) == "m"
    assert plain_model([{"model": "m"}]) is None
    assert triton_model({"model_name": "e"}) == "e"
    assert anthropic_model({"type": "message_start", "message": {"model": "m"}}) == "m"
    assert anthropic_model({"type": "message", "model": "m"}) == "m"


KEYS = [
    "type", "delta", "message", "usage", "content", "content_block", "text", "token", "generated_text", "details",
    "done", "response", "error", "meta_info", "finish_reason", "completion_tokens", "index", "stop", "text_output",
    "prefill", "input_length", "model", "model_name",
]  # fmt: skip
WORDS = ["content_block_delta", "message_start", "message_delta", "content_block_start", "text_delta", "abort", "", "x"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 62) | st.floats() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)
READS = [
    anthropic_event, anthropic_answer, anthropic_model, tgi_event, ollama_event, llamacpp_event, sglang_event,
    triton_event, triton_model, plain_model,
]  # fmt: skip


@pytest.mark.parametrize("read", READS)
@given(value=VALUES)
def test_a_strange_shape_is_an_event_or_one_of_the_strange_errors(read: Any, value: Any) -> None:
    try:
        found = read(value)
    except STRANGE:
        return
    assert found is None or isinstance(found, Event | str)
