import json

import pytest

from demo_server.errors import BadRequestError, EngineFailedError
from demo_server.intake import Asked, Served, read_chat, read_completion
from demo_server.replies import EventWriter, Stamp, error_body, error_event, whole_body
from demo_server.sequence import Output
from tests.demo_server.support import chunks, events

STAMP = Stamp("chatcmpl-1", 1_700_000_000, "demo")
HEAD = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "demo"}
AWKWARD = 'a"b\\c\n\u2028é\u0001😀'


def asked(form: str, *, usage: bool = False) -> Asked:
    served = Served(("demo",), 100)
    body: dict[str, object] = {"stream": True, "stream_options": {"include_usage": usage}}
    if form == "chat":
        return read_chat(json.dumps(body | {"messages": [{"role": "user", "content": "hi"}]}).encode(), served)
    return read_completion(json.dumps(body | {"prompt": "hi"}).encode(), served)


def stream(form: str, *, usage: bool) -> str:
    writer = EventWriter(asked(form, usage=usage), STAMP)
    outputs = [Output(1, AWKWARD, 1), Output(1, "", 2), Output(1, "z", 3, "stop", "|")]
    return (writer.opening() + b"".join(writer.piece(each) for each in outputs) + writer.closing(3)).decode()


def test_a_chat_stream_is_role_pieces_end_usage_and_done() -> None:
    made = chunks(stream("chat", usage=True))
    common = HEAD | {"object": "chat.completion.chunk"}

    def chunk(delta: dict[str, str], **end: str | None) -> dict[str, object]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None} | end
        return common | {"choices": [choice]}

    assert made == [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": AWKWARD}),
        chunk({"content": "z"}, finish_reason="stop", stop_reason="|"),
        common | {"choices": [], "usage": {"prompt_tokens": 21, "total_tokens": 24, "completion_tokens": 3}},
    ]


def test_a_completion_stream_has_text_and_no_role() -> None:
    made = chunks(stream("completion", usage=False))
    assert made == [
        HEAD | {"object": "text_completion", "choices": [choice]}
        for choice in (
            {"index": 0, "text": AWKWARD, "logprobs": None, "finish_reason": None},
            {"index": 0, "text": "z", "logprobs": None, "finish_reason": "stop", "stop_reason": "|"},
        )
    ]


def test_events_are_single_lines_whatever_the_text() -> None:
    assert all("\n" not in event for event in events(stream("chat", usage=True)))


@pytest.mark.parametrize(
    ("form", "kind", "choice"),
    [
        ("chat", "chat.completion", {"message": {"role": "assistant", "content": AWKWARD}}),
        ("completion", "text_completion", {"text": AWKWARD}),
    ],
)
def test_a_whole_reply(form: str, kind: str, choice: dict[str, object]) -> None:
    ours = asked(form)
    body = json.loads(whole_body(ours, STAMP, text=AWKWARD, last=Output(1, "", 4, "length")))
    prompt = len(ours.generation.prompt)
    assert body == HEAD | {
        "object": kind,
        "choices": [{"index": 0, **choice, "logprobs": None, "finish_reason": "length", "stop_reason": None}],
        "usage": {"prompt_tokens": prompt, "total_tokens": prompt + 4, "completion_tokens": 4},
    }


def test_errors_have_openais_form() -> None:
    detail = {"message": "no", "type": "BadRequestError", "param": "n", "code": 400}
    assert json.loads(error_body(BadRequestError("no", param="n"))) == {"error": detail}
    (event,) = chunks(error_event(EngineFailedError("gone")).decode())
    assert event == {"error": {"message": "gone", "type": "InternalServerError", "param": None, "code": 500}}


def test_an_error_may_name_what_utf8_cannot_hold() -> None:
    assert json.loads(error_body(BadRequestError("no", param="\ud800x")))["error"]["param"] == "?x"
