import orjson

from sidecar.judging.watch import Shed
from sidecar.relaying.own_answer import error_answer, overload_answer
from sidecar.said.dialects import ANTHROPIC


def test_our_own_answers_are_errors_in_the_form_of_openai() -> None:
    answer = error_answer(413, "too long", kind="invalid_request_error", minor=1, keep=False)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 413 Content Too Large"
    assert b"Connection: close" in head
    assert orjson.loads(body) == {
        "error": {"message": "too long", "type": "invalid_request_error", "param": None, "code": 413}
    }


def test_who_asks_too_much_is_told_so_in_the_form_of_the_api_and_when_to_come_again() -> None:
    answer = overload_answer(Shed(ANTHROPIC, 7), minor=1, keep=True)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 503 Service Unavailable"
    assert b"\r\nRetry-After: 7" in head
    assert b"\r\nContent-Length: %d" % len(body) in head
    assert orjson.loads(body)["type"] == "error"
    assert "7 s" in orjson.loads(body)["error"]["message"]
