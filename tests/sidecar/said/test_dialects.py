"""Which requests are asks for an answer, and what they ask."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.said.dialects import LOOK_BYTES, TAIL_BYTES, Ask, Dialect, read_ask, recognise

PATHS: dict[str, str | None] = {
    "/v1/chat/completions": "openai.chat",
    "/v1/chat/completions/": "openai.chat",
    "/chat/completions": "openai.chat",
    "/openai/v1/chat/completions": "openai.chat",
    "/proxy/7/v1/chat/completions": "openai.chat",
    "/openai/deployments/gpt-x/chat/completions": "openai.chat",
    "/v1/completions": "openai.completions",
    "/completions": "openai.completions",
    "/v1/responses": "openai.responses",
    "/v1/messages": "anthropic.messages",
    "/anthropic/v1/messages": "anthropic.messages",
    "/generate_stream": "tgi",
    "/": "tgi",
    "/generate": "sglang",
    "/api/chat": "ollama.chat",
    "/api/generate": "ollama.generate",
    "/completion": "llamacpp",
    "/infill": "llamacpp",
    "/v2/models/ens/generate": "triton",
    "/v2/models/ens/generate_stream": "triton",
    "/v2/models/ens/versions/3/generate_stream": "triton",
    "/invocations": "openai.chat",
    "/v1/models": None,
    "/v1/embeddings": None,
    "/v1/threads/t1/messages": None,
    "/v1/messages/count_tokens": None,
    "/v1/responses/resp_1/cancel": None,
    "/v1/chat/completions/chatcmpl-1": None,
    "/tokenize": None,
    "/metrics": None,
    "/v1/chat/completionsx": None,
    "/xcompletions": None,
}


@pytest.mark.parametrize("query", ["", "?api-version=2024-10-21", "?a=/v1/models"])
@pytest.mark.parametrize("path", PATHS)
def test_paths(path: str, query: str) -> None:
    dialect = recognise(f"{path}{query}".encode())
    assert (None if dialect is None else dialect.name) == PATHS[path]


@given(target=st.binary(max_size=60))
def test_any_target_is_recognised_or_not(target: bytes) -> None:
    found = recognise(target)
    assert found is None or isinstance(found, Dialect)


def ask(path: str, body: Any) -> Ask:
    dialect = recognise(path.encode())
    assert dialect is not None
    return read_ask(dialect, body if isinstance(body, bytes) else json.dumps(body).encode())


CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
ASKS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "a plain chat": (
        CHAT,
        {"model": "m", "messages": []},
        {"operation": "chat", "model": "m", "stream": False, "choices": 1, "wants_usage": False, "generates": True},
    ),
    "a streamed chat with usage": (
        CHAT,
        {"model": "m", "stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "wants_usage": True},
    ),
    "usage asked for by anything but true is not asked": (
        CHAT,
        {"stream": True, "stream_options": {"include_usage": "yes"}},
        {"wants_usage": False},
    ),
    "several choices": (CHAT, {"n": 3}, {"choices": 3}),
    "no choices at all is one": (CHAT, {"n": 0}, {"choices": 1}),
    "n of a wrong type is one": (CHAT, {"n": "3"}, {"choices": 1}),
    "a boundless n is bounded": (CHAT, {"n": 1 << 39}, {"choices": 1 << 20}),
    "a list of prompts asks for one answer each": (COMPLETIONS, {"prompt": ["a", "b"], "n": 2}, {"choices": 4}),
    "a list of token lists too": (COMPLETIONS, {"prompt": [[1, 2], [3]]}, {"choices": 2}),
    "a prompt of tokens is one": (
        COMPLETIONS,
        {"prompt": [1, 2, 3]},
        {"choices": 1, "operation": "text_completion"},
    ),
    "stream of a wrong type is none": (CHAT, {"stream": "true"}, {"stream": False}),
    "a model that is no name is unknown": (CHAT, {"model": ["m"]}, {"model": None}),
    "an overlong model is unknown": (CHAT, {"model": "m" * 300}, {"model": None}),
    "a body that is no JSON": (CHAT, b"\xff{", {"model": None, "stream": False, "prompt_bytes": 2}),
    "a body that is no object": (CHAT, b"[1]", {"model": None, "prompt_bytes": 3}),
    "an empty body": (CHAT, b"", {"model": None, "prompt_bytes": 0}),
    "the model of an Azure deployment stands in the path": (
        "/openai/deployments/dep-1/chat/completions",
        {"messages": []},
        {"model": "dep-1"},
    ),
    "Ollama streams unless told": ("/api/chat", {"model": "m", "messages": [{}]}, {"stream": True}),
    "Ollama told not to": ("/api/chat", {"messages": [{}], "stream": False}, {"stream": False}),
    "an Ollama call that loads a model generates nothing": ("/api/generate", {"model": "m"}, {"generates": False}),
    "an Ollama prompt": ("/api/generate", {"prompt": "hi"}, {"generates": True, "operation": "text_completion"}),
    "TGI's stream path streams": ("/generate_stream", {"inputs": "hi"}, {"stream": True}),
    "TGI's root streams as the body says": ("/", {"inputs": "hi", "stream": True}, {"stream": True, "generates": True}),
    "a root without inputs is nobody's": ("/", {"hello": 1}, {"generates": False}),
    "Triton's model stands in the path": ("/v2/models/ens/generate", {"text_input": "x"}, {"model": "ens"}),
    "Triton's stream path streams": ("/v2/models/ens/generate_stream", {}, {"stream": True, "model": "ens"}),
    "SGLang's samples": ("/generate", {"text": "x", "sampling_params": {"n": 2}}, {"choices": 2}),
    "SGLang's batch": ("/generate", {"text": ["x", "y"], "sampling_params": None}, {"choices": 2}),
    "SGLang's list of parameters": ("/generate", {"text": ["x", "y"], "sampling_params": [{}, {}]}, {"choices": 2}),
}


@pytest.mark.parametrize("sentence", ASKS)
def test_asks(sentence: str) -> None:
    path, body, expected = ASKS[sentence]
    found = ask(path, body)
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/generate", {"inputs": "hi"}, "tgi"),
        ("/generate", {"text": "hi"}, "sglang"),
        ("/generate", {"input_ids": [1]}, "sglang"),
        ("/invocations", {"messages": []}, "openai.chat"),
        ("/invocations", {"prompt": "x"}, "openai.completions"),
        ("/invocations", {"inputs": "x"}, "tgi"),
        (CHAT, {"prompt": "x"}, "openai.chat"),
    ],
)
def test_the_body_tells_servers_of_one_path_apart(path: str, body: Any, name: str) -> None:
    assert ask(path, body).dialect.name == name


def long_body(**fields: Any) -> bytes:
    """As many clients write it: messages first, with an image, and what matters last."""
    text = 'quoted "model": "fake", "stream": false, and \\"model\\": "fake"'
    image = "data:image/png;base64," + "QUJD" * 60_000
    content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": image}}]
    return json.dumps({"messages": [{"role": "user", "content": content}], **fields}).encode()


def look(body: bytes, path: str = CHAT) -> Ask:
    dialect = recognise(path.encode())
    assert dialect is not None
    return read_ask(dialect, body[:LOOK_BYTES], complete=False, tail=body[-TAIL_BYTES:], size=len(body))


def test_a_long_body_is_understood_by_its_tail() -> None:
    body = long_body(model='big "m"', stream=True, n=2, stream_options={"include_usage": True})
    found = look(body)
    assert len(body) > LOOK_BYTES + TAIL_BYTES
    assert (found.model, found.stream, found.choices, found.wants_usage) == ('big "m"', True, 2, True)
    assert found.prompt_bytes == len(body)
    assert found.generates


def test_a_long_body_is_understood_by_its_head() -> None:
    fields = {"model": "big", "stream": True, **json.loads(long_body())}
    found = look(json.dumps(fields).encode())
    assert (found.model, found.stream) == ("big", True)


def test_a_long_body_without_the_fields_has_none() -> None:
    found = look(long_body())
    assert (found.model, found.stream, found.choices, found.wants_usage) == (None, False, 1, False)


@pytest.mark.parametrize(
    "model", [b'"a\\q"', b'""', b"7", b"null", b'"unfinished', b'"\\ud800"', b'"' + b"m" * 2000 + b'"']
)
def test_a_long_body_with_a_model_that_is_none(model: bytes) -> None:
    body = long_body()[:-1] + b', "stream": true, "model": ' + model + b"}"
    found = look(body)
    assert found.model is None
    assert found.stream


def test_a_long_body_of_another_server_on_the_same_path() -> None:
    body = json.dumps({"inputs": "x" * 200_000}).encode()
    assert look(body, "/generate").dialect.name == "tgi"
    assert look(json.dumps({"text": "x" * 200_000}).encode(), "/generate").dialect.name == "sglang"


@given(
    body=st.binary(max_size=200) | st.text(max_size=80).map(lambda text: json.dumps({"model": text}).encode()),
    path=st.sampled_from([path for path, name in PATHS.items() if name]),
    end=st.integers(0, 200),
)
def test_no_body_whole_or_cut_fails(body: bytes, path: str, end: int) -> None:
    dialect = recognise(path.encode())
    assert dialect is not None
    for found in (
        read_ask(dialect, body),
        read_ask(dialect, body[:end], complete=False, tail=body[end:], size=len(body)),
    ):
        assert found.prompt_bytes == len(body)
        assert found.choices >= 1


FIELDS = [
    "model",
    "stream",
    "n",
    "prompt",
    "messages",
    "stream_options",
    "text",
    "inputs",
    "sampling_params",
    "input_ids",
]


@given(
    body=st.dictionaries(
        st.sampled_from(FIELDS),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=4),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
            max_leaves=6,
        ),
    ),
    path=st.sampled_from([path for path, name in PATHS.items() if name]),
)
def test_no_shape_of_body_fails(body: dict[str, Any], path: str) -> None:
    found = ask(path, body)
    assert 1 <= found.choices <= 1 << 20
    assert isinstance(found.stream, bool)
