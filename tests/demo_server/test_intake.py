import json

import pytest
from pydantic import ValidationError

from demo_server.errors import BadRequestError, UnknownModelError
from demo_server.intake import (
    MAX_MESSAGES,
    MAX_PROMPTS,
    ChatBody,
    CompletionBody,
    Served,
    read_chat,
    read_completion,
)
from demo_server.sequence import Sampling
from demo_server.text import encode, encode_chat

SERVED = Served(models=("demo", "other"), max_model_len=100)
CHAT = {"messages": [{"role": "user", "content": "hi"}]}
COMPLETION = {"prompt": "hi"}


def test_a_chat_in_full() -> None:
    body = CHAT | {
        "model": "other",
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 4,
        "stop": ["x", "yz"],
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 1,
        "user": "unknown keys are ignored",
    }
    asked = read_chat(json.dumps(body).encode(), SERVED)
    assert (asked.form, asked.stream, asked.include_usage) == ("chat", True, True)
    assert asked.generation.model == "other"
    assert asked.generation.prompt == encode_chat([("user", "hi")])
    assert asked.generation.sampling == Sampling(7, 0.5, 0.9, 4, ignore_eos=True, stop=("x", "yz"))


def test_defaults_are_greedy_whole_and_as_long_as_fits() -> None:
    asked = read_chat(json.dumps(CHAT).encode(), SERVED)
    room = 100 - len(asked.generation.prompt)
    assert (asked.stream, asked.include_usage, asked.generation.model) == (False, False, "demo")
    assert asked.generation.sampling == Sampling(max_tokens=room)
    assert read_completion(b'{"prompt": "hi"}', SERVED).generation.sampling == Sampling(max_tokens=16)


def test_nulls_are_defaults() -> None:
    names = ("model", "max_tokens", "temperature", "top_p", "seed", "stop", "n", "stream", "stream_options", "logprobs")
    asked = read_chat(json.dumps(CHAT | dict.fromkeys(names)).encode(), SERVED)
    assert asked == read_chat(json.dumps(CHAT).encode(), SERVED)


def test_the_newer_name_of_max_tokens_wins() -> None:
    body = CHAT | {"max_tokens": 3, "max_completion_tokens": 5}
    assert read_chat(json.dumps(body).encode(), SERVED).generation.sampling.max_tokens == 5


@pytest.mark.parametrize(
    ("content", "text"),
    [("a", "a"), (None, ""), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"), ([], "")],
)
def test_content_is_text_or_parts_of_text(content: object, text: str) -> None:
    body = {"messages": [{"role": "user", "content": content}]}
    assert read_chat(json.dumps(body).encode(), SERVED).generation.prompt == encode_chat([("user", text)])


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [("hi", encode("hi")), (["hi"], encode("hi")), ([1, 2], (1, 2)), ([[1, 2]], (1, 2)), ("", encode(""))],
)
def test_a_prompt_is_text_or_tokens(prompt: object, tokens: tuple[int, ...]) -> None:
    assert read_completion(json.dumps({"prompt": prompt}).encode(), SERVED).generation.prompt == tokens


@pytest.mark.parametrize(
    ("change", "param", "says"),
    [
        ({"messages": []}, "messages", "messages: List should have at least 1 item"),
        ({"messages": "hi"}, "messages", "messages: Input should be a valid"),
        ({"messages": [{"content": "hi"}]}, "messages", "messages.0.role: Field required"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages", "messages.0.content"),
        ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1 (it is 0)"),
        ({"max_tokens": 1.5}, "max_tokens", "(it is 1.5)"),
        ({"max_tokens": True}, "max_tokens", "(it is True)"),
        ({"max_tokens": 99}, "max_tokens", "together at most 100 fit"),
        ({"max_completion_tokens": -1}, "max_completion_tokens", "(it is -1)"),
        ({"temperature": -0.1}, "temperature", "(it is -0.1)"),
        ({"temperature": 2.1}, "temperature", "(it is 2.1)"),
        ({"top_p": 0}, "top_p", "greater than 0"),
        ({"n": 2}, "n", "n: Input should be 1 (it is 2)"),
        ({"stop": ""}, "stop", "stop"),
        ({"stop": ["a"] * 17}, "stop", "stop"),
        ({"stop": ["a" * 257]}, "stop", "stop"),
        ({"stream": "yes"}, "stream", "stream: Input should be a valid boolean"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "stream_options needs stream"),
        ({"logprobs": True}, "logprobs", "logprobs: Input should be False"),
        ({"messages": [{"role": "user", "content": "x" * 200}]}, "prompt", "at most 99 leave room"),
    ],
    ids=repr,
)
def test_a_wrong_chat_is_told_where(change: dict[str, object], param: str, says: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_chat(json.dumps(CHAT | change).encode(), SERVED)
    assert caught.value.param == param
    assert says in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt": []}, "prompt is empty"),
        ({"prompt": ["a", "b"]}, "prompt holds 2 prompts; one a request is served"),
        ({"prompt": [[1], [2]]}, "prompt holds 2 prompts"),
        ({"prompt": [1, 264]}, "a token id outside 0..263"),
        ({"prompt": [-1]}, "a token id outside 0..263"),
        ({"prompt": None}, "prompt"),
        ({"prompt": [[]]}, "prompt is empty"),
        ({"echo": True}, "echo: Input should be False"),
        ({"logprobs": 3}, "logprobs: Input should be False"),
        ({"best_of": 2}, "best_of: Input should be 1"),
        ({"suffix": "x"}, "suffix"),
    ],
    ids=repr,
)
def test_a_wrong_completion_is_told_where(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_completion(json.dumps(COMPLETION | change).encode(), SERVED)
    assert says in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"hi"', b"null", b"\xff", b"[" * 100_000, b'{"messages": NaN}'],
    ids=lambda b: repr(b[:9]),
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    for read in (read_chat, read_completion):
        with pytest.raises(BadRequestError) as caught:
            read(body, SERVED)
        assert "\n" not in caught.value.message


def test_a_refusal_never_quotes_the_prompt() -> None:
    body = {"messages": [{"role": "user", "content": {"secret": "hunter2"}}], "max_tokens": "hunter2"}
    with pytest.raises(BadRequestError) as caught:
        read_chat(json.dumps(body).encode(), SERVED)
    assert "hunter2" not in caught.value.message


def test_an_unknown_model_is_named_with_those_served() -> None:
    with pytest.raises(UnknownModelError, match="'gpt' does not exist; served: demo, other"):
        read_chat(json.dumps(CHAT | {"model": "gpt"}).encode(), SERVED)


def test_a_prompt_that_fits_exactly_is_taken() -> None:
    body = json.dumps({"prompt": [1] * 99}).encode()
    assert read_completion(body, SERVED).generation.sampling.max_tokens == 1


@pytest.mark.parametrize(
    "body", [b'{"prompt":[%s1.5]}', b'{"prompt":[%s{}]}', b'{"messages":[%s1]}', b'{"messages":[%s{}]}']
)
def test_of_many_faults_few_are_written_down(body: bytes) -> None:
    """A fault of each of a million elements would keep the server from everyone else for a minute."""
    many = body % (b"{},1.5," * 500)
    form = ChatBody if b"messages" in body else CompletionBody
    with pytest.raises(ValidationError) as caught:
        form.model_validate_json(many)
    assert caught.value.error_count() < 10


def test_a_list_longer_than_any_model_can_take_is_refused() -> None:
    messages = [{"role": "user"}] * (MAX_MESSAGES + 1)
    with pytest.raises(BadRequestError, match="at most 8192"):
        read_chat(json.dumps({"messages": messages}).encode(), SERVED)
    prompts: tuple[list[object], ...] = ([""] * (MAX_PROMPTS + 1), [[]] * (MAX_PROMPTS + 1))
    for prompt in prompts:
        with pytest.raises(BadRequestError):
            read_completion(json.dumps({"prompt": prompt}).encode(), SERVED)
