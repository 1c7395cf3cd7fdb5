"""Whether a server is asked: by mode, by engine, and by what its streams have shown."""

from typing import Any

import orjson
import pytest

from sidecar.engine.engines import ENGINES
from sidecar.http.http_head import RequestHead, ResponseHead
from sidecar.said.dialects import CHAT, COMPLETIONS, RESPONSES, Dialect, read_ask
from sidecar.said.exchange import Exchange
from sidecar.usage.usage_policy import Asking, Mode, Result, UsagePolicy

GZIP = (b"Accept-Encoding", b"gzip")
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":5}}\n\n'
BESIDE = b'data: {"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":1,"completion_tokens":5}}\n\n'
DONE = b"data: [DONE]\n\n"


def request(*fields: tuple[bytes, bytes]) -> RequestHead:
    return RequestHead(b"POST", b"/v1/chat/completions", 1, fields, keep_alive=True, length=100)


def play(
    policy: UsagePolicy,
    *,
    fields: tuple[tuple[bytes, bytes], ...] = (),
    answer: bytes = TOKEN + STOP + DONE,
    status: int = 200,
    packed: bool = False,
    dialect: Dialect = CHAT,
    **members: Any,
) -> tuple[bool, Result | None]:
    """One request and its answer; whether the server was asked, and what came of it."""
    asking = policy.candidate(request(*fields), dialect)
    if asking is None:
        return False, None
    body = orjson.dumps({"model": "m", "stream": True, "messages": []} | members)
    exchange = Exchange(read_ask(dialect, body), 0)
    text = asking.edit(exchange.ask, body)
    kind = b"text/event-stream" if status == 200 else b"application/json"
    headers = ((b"Content-Type", kind), *(((b"Content-Encoding", b"gzip"),) if packed else ()))
    hide = asking.answered(ResponseHead(status, b"", headers, keep_alive=True, framing="chunked"))
    assert (hide is not None) == (text is not None and status == 200 and not packed)
    exchange.response_started(status, kind.decode(), at_ns=1)
    exchange.feed(answer, 2)
    if hide is not None:
        hide.feed(answer)
    exchange.response_ended(3)
    return asking.asked, policy.ended(asking, exchange.record())


WITH_USAGE = TOKEN + STOP + USAGE + DONE
ASKED_AND_HIDDEN = (True, "hidden")
UNASKED = (False, None)


def test_auto_asks_a_known_engine_after_a_stream_without_a_count() -> None:
    policy = UsagePolicy("auto", "vllm")
    assert play(policy) == UNASKED
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN


@pytest.mark.parametrize("engine", ENGINES)
def test_auto_asks_only_engines_whose_map_says_what_it_does(engine: str) -> None:
    policy = UsagePolicy("auto", engine)
    play(policy)
    asked, _ = play(policy, answer=WITH_USAGE)
    assert asked is (engine in ("vllm", "sglang", "trtllm"))


@pytest.mark.parametrize("engine", [None, "auto", "unheard-of"])
def test_an_unknown_engine_is_asked_by_on_alone(engine: str | None) -> None:
    assert UsagePolicy("auto", engine).candidate(request(), CHAT) is None
    assert play(UsagePolicy("on", engine), answer=WITH_USAGE) == ASKED_AND_HIDDEN


def test_off_holds_no_request() -> None:
    assert UsagePolicy("off", "vllm").candidate(request(), CHAT) is None
    assert UsagePolicy().candidate(request(), CHAT) is None


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_only_chat_and_completions_have_the_option(mode: Mode) -> None:
    policy = UsagePolicy(mode, "vllm")
    assert policy.candidate(request(), CHAT) is not None
    assert policy.candidate(request(), COMPLETIONS) is not None
    assert policy.candidate(request(), RESPONSES) is None
    assert policy.candidate(request((b"Expect", b"100-continue")), CHAT) is None


def test_a_server_that_counts_by_itself_is_left_alone_until_it_is_gone() -> None:
    policy = UsagePolicy("auto", "vllm")
    assert play(policy, answer=WITH_USAGE) == UNASKED
    assert policy.candidate(request(), CHAT) is None
    policy.engine_is("vllm")
    assert policy.candidate(request(), CHAT) is None
    policy.server_gone()
    assert play(policy) == UNASKED
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN


def test_another_engine_is_another_server() -> None:
    policy = UsagePolicy("auto", "vllm")
    play(policy)
    policy.engine_is("sglang")
    assert play(policy) == UNASKED
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN
    policy.engine_is("litellm")
    assert policy.candidate(request(), CHAT) is None


def test_each_dialect_is_learnt_by_itself() -> None:
    policy = UsagePolicy("auto", "vllm")
    play(policy)
    assert play(policy, dialect=COMPLETIONS) == UNASKED
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN


@pytest.mark.parametrize(
    ("what", "teaching"),
    [
        ("it failed", {"status": 500, "answer": b"{}"}),
        ("it was empty", {"answer": STOP + DONE}),
        ("its client asked for usage", {"stream_options": {"include_usage": True}, "answer": WITH_USAGE}),
        ("its client asked for something else", {"stream_options": {"x": 1}, "answer": WITH_USAGE}),
        ("it was no stream", {"stream": False, "status": 200, "answer": WITH_USAGE}),
    ],
    ids=str,
)
def test_a_request_that_could_not_show_anything_teaches_nothing(what: str, teaching: dict[str, Any]) -> None:
    policy = UsagePolicy("auto", "vllm")
    assert play(policy, **teaching) == UNASKED
    assert play(policy) == UNASKED, what
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_several_answers_are_asked_for_only_where_nothing_moves(mode: Mode) -> None:
    for engine, asked in (("vllm", False), ("sglang", True)):
        policy = UsagePolicy(mode, engine)
        play(policy)
        assert play(policy, n=2, answer=WITH_USAGE)[0] is asked


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_client_that_takes_compressed_answers_is_asked_for_once_one_like_it_got_a_plain_one(mode: Mode) -> None:
    policy = UsagePolicy(mode, "vllm")
    play(policy)
    assert play(policy, fields=(GZIP,)) == UNASKED
    assert play(policy, fields=(GZIP,), answer=WITH_USAGE) == ASKED_AND_HIDDEN


def test_a_stream_that_came_compressed_says_nothing_for_the_next() -> None:
    policy = UsagePolicy("on", "vllm")
    assert play(policy, fields=(GZIP,), packed=True) == UNASKED
    assert play(policy, fields=(GZIP,)) == UNASKED
    assert play(policy, fields=(GZIP,), answer=WITH_USAGE) == ASKED_AND_HIDDEN


@pytest.mark.parametrize(
    ("result", "answer"),
    [("shown", {"answer": TOKEN + BESIDE + DONE}), ("packed", {"packed": True})],
)
@pytest.mark.parametrize("proven", [False, True])
def test_auto_never_asks_again_after_an_answer_that_could_not_be_hidden(
    result: Result, answer: dict[str, Any], proven: bool
) -> None:
    policy = UsagePolicy("auto", "vllm")
    play(policy)
    if proven:
        play(policy, answer=WITH_USAGE)
    assert play(policy, **answer) == (True, result)
    assert policy.candidate(request(), CHAT) is None


def test_on_asks_whatever_comes() -> None:
    policy = UsagePolicy("on")
    for answer in ({"answer": TOKEN + BESIDE + DONE}, {"packed": True}, {"status": 400, "answer": b"{}"}) * 3:
        assert play(policy, **answer)[0]  # type: ignore[arg-type]
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN


@pytest.mark.parametrize("status", [400, 422])
def test_a_refusal_sends_auto_back_to_learning_and_the_third_settles_it(status: int) -> None:
    policy = UsagePolicy("auto", "vllm")
    for _ in range(3):
        assert play(policy) == UNASKED
        assert play(policy, status=status, answer=b"{}") == (True, "refused")
    assert policy.candidate(request(), CHAT) is None


def test_once_an_asked_stream_was_answered_a_refusal_is_the_clients_own() -> None:
    policy = UsagePolicy("auto", "vllm")
    play(policy)
    play(policy, answer=WITH_USAGE)
    for _ in range(5):
        assert play(policy, status=400, answer=b"{}") == (True, "refused")
    assert play(policy, answer=WITH_USAGE) == ASKED_AND_HIDDEN


def test_a_server_that_passes_over_the_ask_is_told_apart() -> None:
    policy = UsagePolicy("auto", "vllm")
    play(policy)
    assert play(policy) == (True, "absent")
    assert play(policy, status=503, answer=b"{}") == (True, "absent")


def test_an_answer_that_is_no_stream_passes_as_it_comes() -> None:
    asking = UsagePolicy("on").candidate(request(), CHAT)
    assert isinstance(asking, Asking)
    body = b'{"stream":true}'
    asking.edit(read_ask(CHAT, body), body)
    for status, kind in ((200, b"application/json"), (400, b"text/event-stream")):
        head = ResponseHead(status, b"", ((b"Content-Type", kind),), keep_alive=True, framing="chunked")
        assert asking.answered(head) is None


TEACHING: dict[str, tuple[dict[str, Any], bool]] = {
    "a stream while nothing is known": ({}, True),
    "a stream that asks by itself": ({"stream_options": {"include_usage": True}}, False),
    "one that would take a packed stream": ({"stream_options": {"include_usage": True}, "fields": (GZIP,)}, True),
}


@pytest.mark.parametrize("case", TEACHING)
def test_whose_end_may_change_what_others_are_asked(case: str) -> None:
    members, expected = dict(TEACHING[case][0]), TEACHING[case][1]
    asking = UsagePolicy("auto", "vllm").candidate(request(*members.pop("fields", ())), CHAT)
    assert asking is not None
    body = orjson.dumps({"model": "m", "stream": True, "messages": []} | members)
    assert asking.edit(read_ask(CHAT, body), body) is None
    assert asking.teaches is expected


def test_an_asked_stream_teaches_until_its_count_was_hidden() -> None:
    asking = UsagePolicy("on").candidate(request(), CHAT)
    assert asking is not None
    body = orjson.dumps({"model": "m", "stream": True, "messages": []})
    assert asking.edit(read_ask(CHAT, body), body) is not None
    head = ResponseHead(200, b"", ((b"Content-Type", b"text/event-stream"),), keep_alive=True, framing="chunked")
    hide = asking.answered(head)
    assert hide is not None
    assert asking.teaches
    hide.feed(WITH_USAGE)
    assert not asking.teaches
